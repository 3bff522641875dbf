#include "train/loop/model_sizes.h"

#include <cstdint>
#include <string_view>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "layers/model.h"

namespace fovea::detail {
namespace {

// No size is larger, so that no product of two can overflow.
constexpr std::int64_t largest_size = std::int64_t{1} << 31;

void check_bounds(const std::string& what, const char* name, std::int64_t size) {
  if (size >= 1 && size <= largest_size) return;
  fail<FileError>("{} belongs to a model whose {} is {}: it must be from 1 to {}", what, name, size,
                  largest_size);
}

void check_shape(const std::string& what, const Shapes& tensors, const std::string& name,
                 const Shape& expected) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    fail<FileError>("{} has no tensor {}, which the model of its settings has", what, in_quotes(name));
  }
  if (found->second != expected) {
    fail<FileError>("{} has the tensor {} of shape {}, which in the model of its settings is {}", what,
                    in_quotes(name), to_string(found->second), to_string(expected));
  }
}

void check_bounds_of(const std::string& what, const GptConfig& config) {
  const MultiHeadAttentionOptions& attention = config.block.attention;
  check_bounds(what, "vocabulary", config.vocabulary);
  check_bounds(what, "context", config.context);
  check_bounds(what, "d_model", config.d_model);
  check_bounds(what, "number of heads", config.heads);
  check_bounds(what, "number of layers", config.layers);
  check_bounds(what, "head size", attention.head_size.value_or(1));
  check_bounds(what, "number of heads for keys", attention.key_value_heads.value_or(1));
  check_bounds(what, "hidden size", config.block.d_hidden.value_or(1));
}

}  // namespace

Shapes model_shapes(const SafetensorsHeader& checkpoint) {
  constexpr std::string_view prefix = "model.";
  Shapes shapes;
  for (const SafetensorsEntry& entry : checkpoint.entries) {
    if (entry.name.starts_with(prefix)) shapes.emplace(entry.name.substr(prefix.size()), entry.shape);
  }
  return shapes;
}

void check_gpt_sizes(const std::string& what, const GptConfig& config, const Shapes& tensors) {
  check_bounds_of(what, config);
  const MultiHeadAttentionOptions& attention = config.block.attention;
  const std::int64_t d_model = config.d_model, heads = config.heads;
  // The embeddings would be made before the block that refuses this.
  if (!attention.head_size && d_model % heads != 0) {
    fail<FileError>("{} belongs to a model whose {} channels do not divide into {} heads", what, d_model,
                    heads);
  }
  const std::int64_t head_size = attention.head_size.value_or(d_model / heads);
  const std::int64_t key_value_heads = attention.key_value_heads.value_or(heads);
  check_shape(what, tensors, "token_embedding.table", {config.vocabulary, d_model});
  if (config.positions == Positions::learned) {
    check_shape(what, tensors, "position_embedding.table", {config.context, d_model});
  }
  // The other tensors of a block have the sizes of these.
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    check_shape(what, tensors, block + "attention.Wq", {d_model, heads * head_size});
    check_shape(what, tensors, block + "attention.Wk", {d_model, key_value_heads * head_size});
    if (attention.relative_bias) {
      check_shape(what, tensors, block + "attention.relative_bias.table",
                  {attention.relative_bias->buckets, heads});
    }
    if (config.block.mlp != MlpKind::none) {
      check_shape(what, tensors, block + (is_gated(config.block.mlp) ? "mlp.W1" : "mlp.up.W"),
                  {d_model, hidden_size(d_model, config.block)});
    }
  }
}

void check_one_head_sizes(const std::string& what, std::int64_t vocabulary, std::int64_t d_model,
                          const Shapes& tensors) {
  check_bounds(what, "vocabulary", vocabulary);
  check_bounds(what, "d_model", d_model);
  check_shape(what, tensors, "embedding.table", {vocabulary, d_model});
  check_shape(what, tensors, "attention.Wq", {d_model, d_model});
}

}  // namespace fovea::detail
