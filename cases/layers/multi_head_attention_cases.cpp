#include "cases/layer_cases.h"
#include "cases/layers/in_training.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/multi_head_attention.h"

namespace fovea {

void add_multi_head_attention_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Tensor x = randn({1, 5, 6}, rng);
  // A bias of the keys adds the same number to all scores of a query, which softmax does not see. It has an
  // effect where keys are rotated or normalised, scores capped, or a sink takes part in the softmax.
  const std::vector<std::string> key_bias{"bk"};
  const auto row = [&](const std::string& name, const MultiHeadAttentionOptions& options,
                       const std::vector<std::string>& expect_zero = {}) {
    cases.add("MultiHeadAttention" + name, MultiHeadAttention(6, 3, rng, options), x, expect_zero);
  };
  row("", {}, key_bias);
  row(", without biases", {.bias = false});
  row(", rotary halves", {.rotary = RotaryOptions{}});
  row(", rotary adjacent", {.rotary = RotaryOptions{.layout = RotaryLayout::adjacent, .base = 50}});
  row(", ALiBi", {.alibi = true}, key_bias);
  row(", relative bias", {.relative_bias = RelativeBuckets{.buckets = 4, .max_distance = 3}}, key_bias);
  row(", window", {.window = 2}, key_bias);
  row(", norms of queries and keys", {.qk_norm = true});
  row(", softcap", {.softcap = 1.5});
  row(", sinks", {.sinks = true});
  cases.add("MultiHeadAttention, grouped heads of another size",
            MultiHeadAttention(5, 4, rng, {.key_value_heads = 2, .head_size = 3}), randn({1, 3, 5}, rng),
            key_bias);
  cases.add("MultiHeadAttention, in training",
            InTraining<MultiHeadAttention>{MultiHeadAttention(6, 3, rng, {.dropout = 0.3})}, x, {"layer.bk"});
  cases.add("MultiHeadAttention, to a context", MultiHeadAttention(6, 3, rng),
            Inputs{{"x", randn({2, 3, 6}, rng)}, {"context", randn({2, 5, 6}, rng)}}, key_bias);
}

}  // namespace fovea
