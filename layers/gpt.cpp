#include "fovea/layers/gpt.h"

#include "fovea/autograd/graph/graph.h"
#include "fovea/layers/recompute.h"
#include "layers/model.h"
#include "layers/model_options.h"

namespace fovea {

GptConfig without_biases(GptConfig config) {
  config.block.attention.bias = config.block.mlp_bias = false;
  return config;
}

Gpt::Gpt(const GptConfig& config_, Rng& rng)
    : config(config_),
      token_embedding(config.vocabulary, config.d_model, rng),
      position_embedding(config.positions, config.context, config.d_model, rng),
      drop(config.block.dropout),
      blocks(make_blocks("Gpt", config, /*bidirectional=*/false, rng)),
      norm(make_final_norm(config)) {
  initialise_as_gpt2(token_embedding, position_embedding, blocks, rng);
  if (!config.tied_output) {
    output.emplace(config.d_model, config.vocabulary, rng, LinearOptions{.bias = false});
    output->W = normal_weight(output->W.shape(), 0.02, rng);
  }
}

void Gpt::visit_config(Visitor& v) const { detail::visit_options(config, v); }

Tensor Gpt::embed(const Indices& ids, std::int64_t offset) const {
  if (ids.rank() != 2) fail<ShapeError>("[Gpt] expects ids (B, T), and got {}", to_string(ids.shape()));
  return drop(position_embedding(token_embedding(ids), offset));
}

Tensor Gpt::project(const Tensor& x) const {
  const Tensor last = norm ? call(*norm, x) : x;
  return output ? (*output)(last) : token_embedding.as_output(last);
}

Tensor Gpt::logits(const Indices& ids, const Mask& mask) const {
  Tensor x = embed(ids, 0);
  for (const TransformerBlock& block : blocks) {
    x = config.recompute ? recompute(block, x, mask) : block(x, mask);
  }
  return project(x);
}

Gpt::Cache Gpt::cache(std::int64_t batch, std::optional<std::int64_t> capacity) const {
  Cache cache;
  for (const TransformerBlock& block : blocks) {
    cache.blocks.push_back(block.attention.cache(batch, capacity.value_or(config.context)));
  }
  return cache;
}

Tensor Gpt::logits(const Indices& ids, Cache& cache) const {
  if (cache.blocks.size() != blocks.size()) {
    fail<ShapeError>("[Gpt] the cache is for {} blocks, and there are {}: make it with this model's cache()",
                     cache.blocks.size(), blocks.size());
  }
  const NoGrad no_grad;
  // An earlier pass that threw may have left some blocks' caches longer than others.
  for (KvCache& kept : cache.blocks) kept.truncate(cache.length);
  Tensor x = embed(ids, cache.length);
  for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, cache.blocks[i]);
  Tensor logits = project(x);
  cache.length += ids.size(1);
  return logits;
}

}  // namespace fovea
