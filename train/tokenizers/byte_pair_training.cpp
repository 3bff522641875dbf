#include <algorithm>
#include <queue>
#include <unordered_set>

#include "autograd/base/fail.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "train/tokenizers/byte_pair_model.h"
#include "train/tokenizers/split_words.h"

namespace fovea {
namespace {

using Merge = BytePairTokenizer::Merge;

// A distinct word of the text: its tokens so far, and how often it occurs.
struct Word {
  std::vector<std::uint32_t> tokens;
  std::int64_t count;
};

std::vector<Word> distinct_words(std::string_view text, const std::array<std::uint32_t, 256>& token_of_byte) {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<Word> words;
  detail::split_words(text, [&](std::string_view word) {
    const auto [found, is_new] = places.try_emplace(word, words.size());
    if (is_new) {
      Word& added = words.emplace_back();
      for (const char byte : word) added.tokens.push_back(token_of_byte[static_cast<unsigned char>(byte)]);
    }
    ++words[found->second].count;
  });
  return words;
}

// Counts how often each pair of neighbouring tokens occurs. A merge updates only the counts around the places
// where it applies.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word> words) : words_(std::move(words)) {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::vector<std::uint32_t>& tokens = words_[w].tokens;
      for (std::size_t i = 1; i < tokens.size(); ++i) grow(tokens[i - 1], tokens[i], w);
    }
    queue_grown();
  }

  struct Best {
    std::int64_t count;
    std::uint64_t pair;
    // The largest pair is the most frequent one; of equally frequent ones, the one with the lowest ids.
    bool operator<(const Best& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  // The most frequent pair, with a count of 0 if there is none.
  Best best() {
    while (!queue_.empty()) {
      const Best top = queue_.top();
      const auto found = pairs_.find(top.pair);
      const std::int64_t now = found == pairs_.end() ? 0 : found->second.count;
      if (now == top.count) return top;
      // The pair has become rarer since it was queued, so it is queued again with its present count.
      queue_.pop();
      if (now > 0) queue_.push({now, top.pair});
    }
    return {0, 0};
  }

  void merge(std::uint64_t pair, std::uint32_t token) {
    const std::vector<std::size_t> places = std::move(pairs_.at(pair).words);
    for (const std::size_t w : places) {
      merge_in(w, static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair), token);
    }
    pairs_.erase(pair);
    queue_grown();
  }

 private:
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // those that have the pair, or had it
  };

  void grow(std::uint32_t left, std::uint32_t right, std::size_t w) {
    const std::uint64_t key = detail::pair_key(left, right);
    Pair& pair = pairs_[key];
    pair.count += words_[w].count;
    if (pair.words.empty() || pair.words.back() != w) pair.words.push_back(w);
    grown_.push_back(key);
  }

  void shrink(std::uint32_t left, std::uint32_t right, std::size_t w) {
    pairs_[detail::pair_key(left, right)].count -= words_[w].count;
  }

  void merge_in(std::size_t w, std::uint32_t left, std::uint32_t right, std::uint32_t token) {
    std::vector<std::uint32_t>& tokens = words_[w].tokens;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++kept) {
      if (tokens[i] != left || i + 1 == tokens.size() || tokens[i + 1] != right) {
        tokens[kept] = tokens[i++];
        continue;
      }
      if (kept > 0) {
        shrink(tokens[kept - 1], left, w);
        grow(tokens[kept - 1], token, w);
      }
      if (i + 2 < tokens.size()) {
        shrink(right, tokens[i + 2], w);
        grow(token, tokens[i + 2], w);
      }
      tokens[kept] = token;
      i += 2;
    }
    tokens.resize(kept);
  }

  // Queues each pair once whose count has grown, when the merge is complete.
  void queue_grown() {
    std::ranges::sort(grown_);
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const std::uint64_t pair : grown_) queue_.push({pairs_[pair].count, pair});
    grown_.clear();
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::priority_queue<Best> queue_;
  std::vector<std::uint64_t> grown_;
};

}  // namespace

BytePairTokenizer BytePairTokenizer::train(std::string_view text, const BytePairTraining& options) {
  if (options.merges < 0 || options.min_count < 1) {
    fail<ValueError>(
        "[BytePairTokenizer::train] merges is {} and min_count is {}: they must be at least 0 and 1",
        options.merges, options.min_count);
  }
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::uint32_t> ids;
  const auto id_of = [&](std::string bytes) {
    const auto [found, is_new] = ids.try_emplace(std::move(bytes), static_cast<std::uint32_t>(tokens.size()));
    if (is_new) tokens.push_back(found->first);
    return found->second;
  };
  std::array<std::uint32_t, 256> token_of_byte{};
  for (const unsigned char byte : detail::bytes_in_order()) {
    token_of_byte[byte] = id_of(std::string(1, static_cast<char>(byte)));
  }

  PairCounts pairs(distinct_words(text, token_of_byte));
  std::vector<Merge> merges;
  std::unordered_set<std::uint64_t> merged;
  while (static_cast<std::int64_t>(merges.size()) < options.merges) {
    const PairCounts::Best best = pairs.best();
    if (best.count < options.min_count) break;
    const auto left = static_cast<std::size_t>(best.pair >> 32);
    const auto right = static_cast<std::size_t>(best.pair & 0xFFFFFFFFU);
    const std::uint32_t token = id_of(tokens[left] + tokens[right]);
    pairs.merge(best.pair, token);
    // A later merge can make a token that existed before, and so a pair that was merged before.
    if (merged.insert(best.pair).second) {
      merges.push_back({static_cast<std::int64_t>(left), static_cast<std::int64_t>(right), token});
    }
  }
  return {std::move(tokens), std::move(merges)};
}

}  // namespace fovea
