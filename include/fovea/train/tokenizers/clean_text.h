#pragma once

#include <string>
#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Makes the bytes of a text file the text that they stand for, so that one text is the same tokens whichever
/// system saved it: without a byte order mark at its beginning, and with "\n" at the end of every line, where
/// the file has "\r\n" or "\r". Clean a text before you make a tokenizer or data of it.
///
/// Bytes that are not UTF-8 stay as they are: whether they are allowed is for the tokenizer to say.
/// Throws: ValueError for a text in UTF-16 or UTF-32, and for any zero byte, which only binary files have.
FOVEA_API std::string clean_text(std::string_view bytes);

}  // namespace fovea
