#include <nlohmann/json.hpp>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/tokenizer.h"
#include "train/tokenizers/byte_pair_model.h"

namespace fovea {
namespace {

detail::BytePairReader read_byte_pairs(const nlohmann::json& description) {
  detail::BytePairReader reader(description.at("vocab"));
  for (const nlohmann::json& line : description.at("merges")) {
    reader.add_merge(line.get_ref<const std::string&>());
  }
  return reader;
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json) {
  try {
    const nlohmann::json description = nlohmann::json::parse(json);
    const std::string type = description.at("type");
    if (type == "byte") return std::make_unique<ByteTokenizer>();
    if (type == "character") {
      return std::make_unique<CharacterTokenizer>(
          description.at("characters").get_ref<const std::string&>(),
          CharacterOptions{.unknown = description.at("unknown").get<bool>()});
    }
    if (type == "byte_pair") {
      const detail::BytePairReader reader = read_byte_pairs(description);
      return std::unique_ptr<Tokenizer>(new BytePairTokenizer(reader.tokens(), reader.merges()));
    }
    fail<ValueError>("there is no tokenizer of type {}: use character, byte or byte_pair",
                     detail::in_quotes(type));
  } catch (const nlohmann::json::exception& error) {
    fail<ValueError>("[tokenizer_from_json] the text does not describe a tokenizer: {}", error.what());
  } catch (const ValueError& error) {
    fail<ValueError>("[tokenizer_from_json] {}", error.what());
  }
}

}  // namespace fovea
