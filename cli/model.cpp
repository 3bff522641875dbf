#include "cli/model.h"

#include <fmt/format.h>

#include <string>

#include "autograd/base/text.h"
#include "fovea/train/io/safetensors.h"
#include "train/loop/model_sizes.h"

namespace fovea::cli {
namespace {

GptConfig gpt_config(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context) {
  GptConfig config = recipe.model;
  config.vocabulary = vocabulary;
  config.context = context;
  return config;
}

std::variant<OneHeadModel, Gpt> make_network(const Recipe& recipe, std::int64_t vocabulary,
                                             std::int64_t context, Rng& rng) {
  if (recipe.kind == ModelKind::one_head) return OneHeadModel(vocabulary, recipe.model.d_model, rng);
  return Gpt(gpt_config(recipe, vocabulary, context), rng);
}

}  // namespace

Model::Model(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context, Rng& rng)
    : network(make_network(recipe, vocabulary, context, rng)) {}

Tensor Model::operator()(const Indices& ids) const {
  return std::visit([&](const auto& model) { return model(ids); }, network);
}

void check_model_sizes(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context,
                       const std::filesystem::path& checkpoint) {
  const std::string what = fmt::format("the checkpoint {}", detail::in_quotes(checkpoint.string()));
  const detail::Shapes shapes = detail::model_shapes(read_safetensors_header(checkpoint));
  if (recipe.kind == ModelKind::one_head) {
    detail::check_one_head_sizes(what, vocabulary, recipe.model.d_model, shapes);
  } else {
    detail::check_gpt_sizes(what, gpt_config(recipe, vocabulary, context), shapes);
  }
}

}  // namespace fovea::cli
