#pragma once

#include <functional>
#include <string_view>

namespace fovea::detail {

/// Calls `word` with each word of a text, from first to last. The words are GPT-2's (see BytePairTokenizer),
/// and joined they are the text.
void split_words(std::string_view text, const std::function<void(std::string_view)>& word);

}  // namespace fovea::detail
