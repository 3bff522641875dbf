#include "fovea/train/tokenizers/byte_pair_tokenizer.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "train/tokenizers/byte_pair_model.h"
#include "train/tokenizers/split_words.h"

namespace fovea {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

using Merges = std::vector<BytePairTokenizer::Merge>;
using Ranks = std::unordered_map<std::uint64_t, std::size_t, detail::PairHash>;

// Merges the bytes of a word, again for each word: O(n log n) for n bytes.
class WordMerger {
 public:
  WordMerger(const Merges& merges, const Ranks& ranks) : merges_(merges), ranks_(ranks) {}

  void operator()(std::string_view word, const std::array<std::int64_t, 256>& bytes,
                  std::vector<std::int64_t>& ids) {
    start(word, bytes);
    while (!candidates_.empty()) {
      std::ranges::pop_heap(candidates_, std::greater());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      if (rank_at(best.place) == best.rank) join(best);
    }
    for (std::size_t i = 0; i != none; i = parts_[i].next) ids.push_back(parts_[i].id);
  }

 private:
  // The tokens of the word so far, as a list linked in both directions.
  struct Part {
    std::int64_t id;
    std::size_t previous;
    std::size_t next;
  };
  // A merge of the part at a place with its right neighbour, which was possible when it was queued.
  struct Candidate {
    std::size_t rank;
    std::size_t place;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };

  void start(std::string_view word, const std::array<std::int64_t, 256>& bytes) {
    parts_.clear();
    candidates_.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
      parts_.push_back({bytes[static_cast<unsigned char>(word[i])], i == 0 ? none : i - 1,
                        i + 1 == word.size() ? none : i + 1});
    }
    for (std::size_t i = 0; i < word.size(); ++i) consider(i);
  }

  // The rank of the merge of a part with its right neighbour, or `none`. A part that was merged into its left
  // neighbour has id -1.
  std::size_t rank_at(std::size_t place) const {
    const Part& part = parts_[place];
    if (part.id < 0 || part.next == none) return none;
    const auto found = ranks_.find(detail::pair_key(part.id, parts_[part.next].id));
    return found == ranks_.end() ? none : found->second;
  }

  void consider(std::size_t place) {
    const std::size_t rank = rank_at(place);
    if (rank == none) return;
    candidates_.push_back({rank, place});
    std::ranges::push_heap(candidates_, std::greater());
  }

  void join(const Candidate& pair) {
    Part& left = parts_[pair.place];
    Part& right = parts_[left.next];
    left.id = merges_[pair.rank].token;
    right.id = -1;
    left.next = right.next;
    if (left.next != none) parts_[left.next].previous = pair.place;
    consider(pair.place);
    if (left.previous != none) consider(left.previous);
  }

  const Merges& merges_;
  const Ranks& ranks_;
  std::vector<Part> parts_;
  std::vector<Candidate> candidates_;  // a heap
};

}  // namespace

BytePairTokenizer::BytePairTokenizer(std::vector<std::string> tokens, std::vector<Merge> merges)
    : Tokenizer(std::move(tokens)), merges_(std::move(merges)) {
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    ranks_.emplace(detail::pair_key(merges_[rank].left, merges_[rank].right), rank);
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = find(std::string(1, static_cast<char>(byte))).value();
  }
}

std::vector<std::int64_t> BytePairTokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  // Most words occur many times in a text. For each, the position of its ids in the result and their number.
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;
  WordMerger merge(merges_, ranks_);
  detail::split_words(text, [&](std::string_view word) {
    const std::size_t begin = ids.size();
    const auto [found, is_new] = known.try_emplace(word, begin, 0);
    if (is_new) {
      merge(word, bytes_, ids);
      found->second.second = ids.size() - begin;
    } else {
      const std::size_t from = found->second.first;
      for (std::size_t i = 0; i < found->second.second; ++i) ids.push_back(ids[from + i]);
    }
  });
  return ids;
}

}  // namespace fovea
