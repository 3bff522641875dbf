#pragma once

#include <functional>
#include <string_view>

namespace fovea::detail {

/// Calls `word` with each word of a text, from first to last; together they are the text. Words are GPT-2's
/// (see BytePairTokenizer), and each run of bytes that are not UTF-8.
void split_words(std::string_view text, const std::function<void(std::string_view)>& word);

}  // namespace fovea::detail
