#include "fovea/layers/gpt.h"

#include "fovea/autograd/graph/graph.h"
#include "fovea/layers/checkpoint.h"
#include "layers/model.h"

namespace fovea {
namespace {

TransformerBlockOptions block_options(const GptConfig& config) {
  TransformerBlockOptions options{.attention = {.key_value_heads = config.key_value_heads,
                                                .bias = config.bias,
                                                .window = config.window,
                                                .qk_norm = config.qk_norm,
                                                .dropout = config.dropout},
                                  .norm = config.norm,
                                  .activation = config.activation,
                                  .d_hidden = config.d_hidden,
                                  .swiglu = config.swiglu,
                                  .bias = config.bias,
                                  .dropout = config.dropout};
  bring_positions(options.attention, config.positions, /*bidirectional=*/false);
  return options;
}

}  // namespace

Gpt::Gpt(const GptConfig& config_, Rng& rng)
    : config(config_),
      words(config.vocabulary, config.d_model, rng),
      positions(config.positions, config.context, config.d_model, rng),
      drop(config.dropout),
      blocks(make_blocks(config.layers, config.d_model, config.heads, rng, block_options(config))),
      norm(make_norm(config.norm, config.d_model)) {
  check_sizes("Gpt", {config.layers});
  initialise_as_gpt2(words, positions, blocks, rng);
  if (!config.tied_output) {
    output.emplace(config.d_model, config.vocabulary, rng, LinearOptions{.bias = false});
    output->W = normal_weight(output->W.shape(), 0.02, rng);
  }
}

Tensor Gpt::embedded(const Indices& ids, std::int64_t offset) const {
  if (ids.rank() != 2) fail<ShapeError>("[Gpt] expects ids (B, T), and got {}", to_string(ids.shape()));
  return drop(positions(words(ids), offset));
}

Tensor Gpt::logits_of(const Tensor& x) const {
  return output ? (*output)(call(norm, x)) : words.as_output(call(norm, x));
}

Tensor Gpt::logits(const Indices& ids, const Mask& mask) const {
  Tensor x = embedded(ids, 0);
  for (const TransformerBlock& block : blocks) {
    x = config.checkpoint_blocks ? checkpoint(block, x, mask) : block(x, mask);
  }
  return logits_of(x);
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
  // A pass that threw may have left some of them ahead of the others.
  for (KvCache& kept : cache.blocks) kept.truncate(cache.length);
  Tensor x = embedded(ids, cache.length);
  for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, cache.blocks[i]);
  Tensor logits = logits_of(x);
  cache.length += ids.size(1);
  return logits;
}

}  // namespace fovea
