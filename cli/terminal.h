#pragma once

#include <cstdio>

#include "autograd/base/text.h"
#include "fovea/inspect/heat_map.h"
#include "train/loop/terminal.h"

namespace fovea::cli {

using detail::is_terminal;
using detail::width_of;
using detail::with_commas;

/// The colours that a stream can show: none if it is no terminal or if NO_COLOR is set
/// (https://no-color.org).
Colours colours_of(std::FILE* stream);

}  // namespace fovea::cli
