#include "cli/model.h"

namespace fovea::cli {
namespace {

std::variant<OneHeadModel, Gpt> make_network(const Recipe& recipe, std::int64_t vocabulary,
                                             std::int64_t context, Rng& rng) {
  if (recipe.kind == ModelKind::one_head) return OneHeadModel(vocabulary, recipe.model.d_model, rng);
  GptConfig config = recipe.model;
  config.vocabulary = vocabulary;
  config.context = context;
  return Gpt(config, rng);
}

}  // namespace

Model::Model(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context, Rng& rng)
    : network(make_network(recipe, vocabulary, context, rng)) {}

Tensor Model::operator()(const Indices& ids) const {
  return std::visit([&](const auto& model) { return model(ids); }, network);
}

}  // namespace fovea::cli
