#include "train/tokenizers/byte_pair_model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "autograd/base/utf8.h"
#include "train/tokenizers/token_order.h"

namespace fovea::detail {
namespace {

bool is_visible(unsigned byte) {
  constexpr unsigned soft_hyphen = 0xAD;
  return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != soft_hyphen);
}

// GPT-2's letters, one for each byte: a visible character of Latin-1 stands for itself, and U+0100, U+0101
// and so on stand for the other bytes.
struct Letters {
  std::array<unsigned char, 256> bytes{};  // in the order of their letters
  std::array<char32_t, 256> of_byte{};
  std::unordered_map<char32_t, char> to_byte;

  Letters() {
    std::size_t place = 0;
    char32_t next = 0x100;
    for (const bool visible : {true, false}) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        if (is_visible(byte) != visible) continue;
        bytes[place++] = static_cast<unsigned char>(byte);
        of_byte[byte] = visible ? byte : next++;
        to_byte.emplace(of_byte[byte], static_cast<char>(byte));
      }
    }
  }
};

const Letters& letters() {
  static const Letters made;
  return made;
}

// The bytes that letters stand for, or nothing if a character of the name is not such a letter.
std::optional<std::string> bytes_of(std::string_view name) {
  std::string bytes;
  while (!name.empty()) {
    const Character next = first_character(name);
    const auto found = letters().to_byte.find(next.code);
    if (next.length == 0 || found == letters().to_byte.end()) return std::nullopt;
    bytes += found->second;
    name.remove_prefix(next.length);
  }
  return bytes;
}

// For each token, whether its name is written in letters: it is a byte, or a merge makes it.
std::vector<bool> written_in_letters(const std::vector<BytePairTokenizer::Merge>& merges, std::size_t size,
                                     const std::function<std::int64_t(std::string_view)>& find) {
  std::vector<bool> written(size);
  for (const char32_t letter : letters().of_byte) {
    written[static_cast<std::size_t>(find(to_utf8(letter)))] = true;
  }
  for (const auto& merge : merges) written[static_cast<std::size_t>(merge.token)] = true;
  return written;
}

}  // namespace

const std::array<unsigned char, 256>& bytes_in_order() { return letters().bytes; }

std::string letters_of(std::string_view bytes) {
  std::string name;
  for (const char byte : bytes) name += to_utf8(letters().of_byte[static_cast<unsigned char>(byte)]);
  return name;
}

std::size_t PairHash::operator()(std::uint64_t pair) const {
  static const std::uint64_t secret = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  // The finalizer of SplitMix64 (Steele et al. 2014), after which each bit depends on all bits.
  std::uint64_t mixed = pair ^ secret;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

void BytePairReader::add_name(std::string name, const nlohmann::json& id) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= largest_vocabulary) {
    fail<ValueError>("the id of token {} is {}: ids are whole numbers from 0 to {} at most", in_quotes(name),
                     printable(id.dump(), 80), largest_vocabulary - 1);
  }
  if (name.empty()) fail<ValueError>("the token with id {} is empty", id.get<std::uint64_t>());
  names_.push_back(std::move(name));
  ids_.push_back(id.get<std::uint32_t>());
}

// Puts each name into the place of its id.
void BytePairReader::sort_by_ids() {
  std::vector<bool> given(names_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] >= names_.size()) {
      fail<ValueError>("the id of token {} is {}: the ids of {} tokens must be 0 to {}", in_quotes(names_[i]),
                       ids_[i], names_.size(), names_.size() - 1);
    }
    if (given[ids_[i]]) {
      const auto earlier = static_cast<std::size_t>(std::ranges::find(ids_, ids_[i]) - ids_.begin());
      fail<ValueError>("tokens {} and {} have the same id {}", in_quotes(names_[earlier]),
                       in_quotes(names_[i]), ids_[i]);
    }
    given[ids_[i]] = true;
  }
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    while (ids_[i] != i) {
      const std::size_t place = ids_[i];
      std::swap(names_[i], names_[place]);
      std::swap(ids_[i], ids_[place]);
    }
  }
}

void BytePairReader::end_names() {
  if (names_.empty()) {
    fail<ValueError>("the vocabulary is not a JSON object of tokens and their ids, such as {{\"a\": 0}}");
  }
  sort_by_ids();
  order_ = order_of(names_);
  const auto name_of = [&](std::uint32_t id) -> const std::string& { return names_[id]; };
  const auto twice = std::ranges::adjacent_find(order_, {}, name_of);
  if (twice != order_.end()) {
    fail<ValueError>("token {} is given twice, with the ids {} and {}", in_quotes(names_[*twice]), *twice,
                     *(twice + 1));
  }
  for (const unsigned char byte : letters().bytes) {
    const std::string letter = to_utf8(letters().of_byte[byte]);
    if (!find_token(names_, order_, letter)) {
      fail<ValueError>("byte 0x{:02X} has no token: '{}', which stands for it, is missing", byte, letter);
    }
  }
}

std::int64_t BytePairReader::id_of(std::string_view name) const {
  const std::optional<std::int64_t> id = find_token(names_, order_, name);
  if (!id) fail<ValueError>("{} is not a token of the vocabulary", in_quotes(name));
  return *id;
}

void BytePairReader::add_merge(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() || line.rfind(' ') != space) {
    fail<ValueError>("{} is not a merge, which is two tokens with a space between them", in_quotes(line));
  }
  const std::string_view left = line.substr(0, space);
  const std::string_view right = line.substr(space + 1);
  const std::string joined = std::string(left).append(right);
  if (!bytes_of(joined)) {
    fail<ValueError>("{} has a character that stands for no byte: merges join tokens that are made of bytes",
                     in_quotes(line));
  }
  const BytePairTokenizer::Merge merge{id_of(left), id_of(right), id_of(joined)};
  const auto [earlier, is_new] = ranks_.emplace(pair_key(merge.left, merge.right), merges_.size());
  if (!is_new)
    fail<ValueError>("{} is given twice: it is merge {} already", in_quotes(line), earlier->second + 1);
  merges_.push_back(merge);
}

std::vector<std::string> BytePairReader::take_tokens() {
  const std::vector<bool> in_letters =
      written_in_letters(merges_, names_.size(), [this](std::string_view name) { return id_of(name); });
  for (std::size_t id = 0; id < names_.size(); ++id) {
    if (in_letters[id]) names_[id] = bytes_of(names_[id]).value();
  }
  order_ = {};
  return std::move(names_);
}

std::vector<BytePairTokenizer::Merge> BytePairReader::take_merges() {
  ranks_ = {};
  return std::move(merges_);
}

std::string vocabulary_of(const BytePairTokenizer& tokenizer) {
  const auto id_of = [&](std::string_view letter) { return *tokenizer.find(bytes_of(letter).value()); };
  const std::vector<bool> in_letters =
      written_in_letters(tokenizer.merges(), static_cast<std::size_t>(tokenizer.size()), id_of);
  // nlohmann::ordered_json would search all keys for each one that is added, so the object is written by
  // hand.
  std::string vocabulary;
  for (std::int64_t id = 0; id < tokenizer.size(); ++id) {
    const std::string& token = tokenizer.token(id);
    const nlohmann::json name = in_letters[static_cast<std::size_t>(id)] ? letters_of(token) : token;
    vocabulary += fmt::format("{}{}:{}", id == 0 ? '{' : ',', name.dump(), id);
  }
  return vocabulary + '}';
}

std::string line_of(const BytePairTokenizer& tokenizer, const BytePairTokenizer::Merge& merge) {
  return letters_of(tokenizer.token(merge.left)) + ' ' + letters_of(tokenizer.token(merge.right));
}

}  // namespace fovea::detail
