#include <nlohmann/json.hpp>

#include "autograd/base/fail.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/clean_text.h"
#include "train/io/file.h"
#include "train/io/json.h"
#include "train/tokenizers/byte_pair_model.h"

namespace fovea {
namespace {

constexpr std::string_view version = "#version: 0.2\n";

// Calls `read` and adds to its errors the file in which they are.
template <class Read>
void in_file(const std::filesystem::path& path, const Read& read) {
  try {
    read();
  } catch (const ValueError& error) {
    fail<FileError>("[BytePairTokenizer::load] '{}': {}", path.string(), error.what());
  }
}

// Reads a vocab.json.
void read_names(std::string_view text, detail::BytePairReader& reader) {
  detail::read_json_values(text, [&](const detail::JsonPath& path, const nlohmann::json& id) {
    if (path.size() != 1 || !path[0])
      fail<ValueError>("it is not a JSON object of tokens and their ids, such as {{\"a\": 0}}");
    reader.add_name(*path[0], id);
  });
  reader.end_names();
}

// Reads the lines of a merges.txt. The first one may be a version, which is skipped.
void add_merges(std::string_view text, detail::BytePairReader& reader) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1 && line.starts_with("#version")) continue;
    try {
      reader.add_merge(line);
    } catch (const ValueError& error) {
      fail<ValueError>("line {}: {}", number, error.what());
    }
  }
}

}  // namespace

BytePairTokenizer BytePairTokenizer::load(const std::filesystem::path& vocab_json,
                                          const std::filesystem::path& merges_txt) {
  const std::string vocabulary = detail::read_file("BytePairTokenizer::load", vocab_json);
  const std::string merges = detail::read_file("BytePairTokenizer::load", merges_txt);
  detail::BytePairReader reader;
  in_file(vocab_json, [&] { read_names(vocabulary, reader); });
  in_file(merges_txt, [&] { add_merges(clean_text(merges), reader); });
  std::vector<std::string> tokens = reader.take_tokens();
  return {std::move(tokens), reader.take_merges()};
}

void BytePairTokenizer::save(const std::filesystem::path& vocab_json,
                             const std::filesystem::path& merges_txt) const {
  const std::string vocabulary = detail::vocabulary_of(*this);
  std::string lines(version);
  for (const Merge& merge : merges_) lines += detail::line_of(*this, merge) + '\n';
  detail::AtomicFile first("BytePairTokenizer::save", vocab_json),
      second("BytePairTokenizer::save", merges_txt);
  first.write(vocabulary);
  second.write(lines);
  first.commit();
  second.commit();
}

std::string BytePairTokenizer::to_json() const {
  nlohmann::json merges = nlohmann::json::array();
  for (const Merge& merge : merges_) merges.push_back(detail::line_of(*this, merge));
  return fmt::format(R"({{"type":"byte_pair","vocab":{},"merges":{}}})", detail::vocabulary_of(*this),
                     merges.dump());
}

}  // namespace fovea
