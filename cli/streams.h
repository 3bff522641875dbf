#pragma once

#include <string_view>

#include "train/loop/terminal.h"

namespace fovea::cli {

using detail::put;

/// Opens /dev/null in place of each standard stream that is closed. Otherwise the next file that is opened,
/// such as a log, would take its number, and what is printed would go into that file.
void open_standard_streams();

/// Prints a line on stderr, after all that was printed before it. It never throws: where stderr is closed or
/// full, there is nobody to tell.
void print_error(std::string_view text);

/// Whether all that was printed on stdout has been written.
bool output_is_written();

}  // namespace fovea::cli
