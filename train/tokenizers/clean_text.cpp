#include "fovea/train/tokenizers/clean_text.h"

#include "autograd/base/fail.h"

namespace fovea {
namespace {

using namespace std::string_view_literals;

// The encoding that the byte order mark at the beginning of a text names; empty if there is no such mark.
std::string_view marked_encoding(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return "UTF-16";
  return "";
}

void check_encoding(std::string_view bytes) {
  if (const std::string_view encoding = marked_encoding(bytes); !encoding.empty()) {
    fail<ValueError>(
        "[clean_text] the text is in {0}: convert it to UTF-8, for example with iconv -f {0} -t UTF-8",
        encoding);
  }
  if (const std::size_t zero = bytes.find('\0'); zero != std::string_view::npos) {
    fail<ValueError>(
        "[clean_text] byte {} is zero, so this is a binary file or a text in UTF-16: convert it to UTF-8",
        zero);
  }
}

}  // namespace

std::string clean_text(std::string_view bytes) {
  check_encoding(bytes);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '\r') {
      text += '\n';
      if (at + 1 < bytes.size() && bytes[at + 1] == '\n') ++at;
    } else {
      text += bytes[at];
    }
  }
  return text;
}

}  // namespace fovea
