#include "fovea/train/tokenizers/tokenizer.h"

namespace fovea {
namespace {

std::vector<std::string> all_bytes() {
  std::vector<std::string> bytes;
  bytes.reserve(256);
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return bytes;
}

}  // namespace

ByteTokenizer::ByteTokenizer() : Tokenizer(all_bytes()) {}

std::vector<std::int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

std::string ByteTokenizer::to_json() const { return R"({"type":"byte"})"; }

}  // namespace fovea
