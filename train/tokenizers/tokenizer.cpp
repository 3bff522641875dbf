#include "fovea/train/tokenizers/tokenizer.h"

#include "autograd/base/fail.h"
#include "train/tokenizers/token_order.h"

namespace fovea {

Tokenizer::Tokenizer(std::vector<std::string> tokens)
    : tokens_(std::move(tokens)), order_(detail::order_of(tokens_)) {}

const std::string& Tokenizer::token(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    fail<IndexError>("[Tokenizer::token] id {} is outside the vocabulary of {}", id, size());
  }
  return tokens_[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> Tokenizer::find(std::string_view bytes) const {
  return detail::find_token(tokens_, order_, bytes);
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t& id : ids) {
    if (id < 0 || id >= size()) {
      fail<IndexError>("[Tokenizer::decode] id {} at position {} is outside the vocabulary of {}", id,
                       &id - ids.data(), size());
    }
    text += tokens_[static_cast<std::size_t>(id)];
  }
  return text;
}

}  // namespace fovea
