#include "autograd/base/utf8.h"

#include <utf8proc.h>

namespace fovea::detail {

Character first_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (length <= 0) return {};
  return {static_cast<char32_t>(code), static_cast<std::size_t>(length)};
}

std::string to_utf8(char32_t code) {
  std::string bytes(4, '\0');
  const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code),
                                                       reinterpret_cast<utf8proc_uint8_t*>(bytes.data()));
  bytes.resize(static_cast<std::size_t>(length));
  return bytes;
}

}  // namespace fovea::detail
