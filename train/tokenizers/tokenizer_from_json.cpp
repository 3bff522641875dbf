#include <memory>
#include <optional>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/tokenizer.h"
#include "train/io/json.h"
#include "train/tokenizers/byte_pair_model.h"

namespace fovea {
namespace {

// What the JSON of a tokenizer of any type may hold.
struct Description {
  std::string type;
  std::optional<std::string> characters;
  std::optional<bool> unknown;
  detail::BytePairReader vocabulary;
  std::vector<std::string> merges;

  void take(const detail::JsonPath& path, const nlohmann::json& value) {
    if (path.empty() || !path[0]) fail<ValueError>("it is not a JSON object");
    const std::string& field = *path[0];
    if (path.size() == 2 && field == "vocab" && path[1]) {
      vocabulary.add_name(*path[1], value);
    } else if (path.size() == 2 && field == "merges" && !path[1] && value.is_string()) {
      merges.push_back(value.get<std::string>());
    } else if (path.size() == 1 && field == "type" && value.is_string()) {
      type = value.get<std::string>();
    } else if (path.size() == 1 && field == "characters" && value.is_string()) {
      characters = value.get<std::string>();
    } else if (path.size() == 1 && field == "unknown" && value.is_boolean()) {
      unknown = value.get<bool>();
    } else {
      fail<ValueError>("its field {} is unknown or of another form", detail::in_quotes(field));
    }
  }
};

std::unique_ptr<Tokenizer> character_tokenizer(const Description& description) {
  if (!description.characters || !description.unknown)
    fail<ValueError>("a tokenizer of characters has the fields characters and unknown");
  return std::make_unique<CharacterTokenizer>(*description.characters,
                                              CharacterOptions{.unknown = *description.unknown});
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json) {
  try {
    Description description;
    detail::read_json_values(json, [&](const detail::JsonPath& path, const nlohmann::json& value) {
      description.take(path, value);
    });
    if (description.type == "byte") return std::make_unique<ByteTokenizer>();
    if (description.type == "character") return character_tokenizer(description);
    if (description.type == "byte_pair") {
      detail::BytePairReader& reader = description.vocabulary;
      reader.end_names();
      for (const std::string& line : description.merges) reader.add_merge(line);
      std::vector<std::string> tokens = reader.take_tokens();
      return std::unique_ptr<Tokenizer>(new BytePairTokenizer(std::move(tokens), reader.take_merges()));
    }
    fail<ValueError>("there is no tokenizer of type {}: use character, byte or byte_pair",
                     detail::in_quotes(description.type));
  } catch (const ValueError& error) {
    fail<ValueError>("[tokenizer_from_json] the text does not describe a tokenizer: {}", error.what());
  }
}

}  // namespace fovea
