#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fovea/autograd/base/export.h"

/// UTF-8, the encoding of Unicode text (RFC 3629).
namespace fovea::detail {

struct Character {
  char32_t code = 0;
  std::size_t length = 0;  ///< in bytes; 0 if the text does not begin with a character
};

/// The character that a text begins with. Surrogates, overlong forms and codes beyond U+10FFFF don't count.
FOVEA_API Character first_character(std::string_view text);

/// The bytes of a character.
FOVEA_API std::string to_utf8(char32_t code);

}  // namespace fovea::detail
