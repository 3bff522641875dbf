#include "layers/cases.h"

#include "fovea/autograd/attention.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"
#include "fovea/autograd/training.h"
#include "fovea/layers/activations.h"
#include "fovea/layers/dropout.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/encoder.h"
#include "fovea/layers/feed_forward.h"
#include "fovea/layers/gpt.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/multi_head_attention.h"
#include "fovea/layers/one_head_model.h"
#include "fovea/layers/positions.h"
#include "fovea/layers/relative_bias.h"
#include "fovea/layers/rms_norm.h"
#include "fovea/layers/rotary.h"
#include "fovea/layers/self_attention.h"
#include "fovea/layers/sequential.h"
#include "fovea/layers/transformer_block.h"

namespace fovea {
namespace {

// A layer as it is in training, with the same draws at every call.
template <Layer L>
struct InTraining {
  L layer;

  template <class Input>
  Tensor operator()(const Input& x) const {
    const Training scope(7);
    return layer(x);
  }
  static void visit(const InTraining& self, Visitor& v) { v("layer", self.layer); }
};

// A bias by distance is seen through attention. x (B, H, T, D) is queries, keys and values.
template <Layer L>
struct BiasedAttention {
  L bias;

  Tensor operator()(const Tensor& x) const {
    if constexpr (std::same_as<L, Alibi>) {
      return attention(x, x, x, {.relative = bias(x.size(2), x.size(2), x.dtype())});
    } else {
      return attention(x, x, x, {.mask = Mask::causal(), .relative = bias(x.size(2), x.size(2))});
    }
  }
  static void visit(const BiasedAttention& self, Visitor& v) { v("bias", self.bias); }
};

void add_activations(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({3, 5}, rng);
  cases.add("Gelu", Gelu{}, x);
  cases.add("Gelu, by tanh", Gelu{.tanh = true}, x);
  cases.add("Silu", Silu{}, x);
  cases.add("Relu", Relu{}, x);
  cases.add("Dropout", Dropout(0.3), x);
  cases.add("Dropout, in training", InTraining<Dropout>{Dropout(0.3)}, x);
}

void add_feed_forward(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({2, 3, 5}, rng);
  cases.add("FeedForward", FeedForward(5, 7, rng), x);
  cases.add("FeedForward, relu without bias",
            FeedForward(5, 7, rng, {.activation = Activation::relu, .bias = false}), x);
  cases.add("SwiGlu", SwiGlu(5, 7, rng), x);
  cases.add("Sequential", Sequential(Linear(5, 7, rng), Gelu{}, LayerNorm(7), Linear(7, 3, rng)), x);
}

void add_positions(LayerCases& cases, Rng& rng) {
  cases.add("SineCosinePositions", SineCosinePositions(5), randn({2, 3, 5}, rng));
  cases.add("LearnedPositions", LearnedPositions(3, 5, rng), randn({2, 3, 5}, rng));
  cases.add("AddedPositions", AddedPositions(Positions::learned, 3, 5, rng), randn({2, 3, 5}, rng));
  const Tensor heads = randn({2, 3, 5, 2}, rng);
  cases.add("Rotary, halves", Rotary(2), heads);
  cases.add("Rotary, adjacent", Rotary(6, {.pairing = Pairing::adjacent}), randn({2, 3, 6}, rng));
  cases.add("RelativeBias, in attention",
            BiasedAttention<RelativeBias>{RelativeBias(3, rng, {.buckets = 4, .max_distance = 5})}, heads);
  cases.add("Alibi, in attention", BiasedAttention<Alibi>{Alibi(3)}, heads);
}

void add_multi_head_attention(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({2, 3, 6}, rng);
  const auto add = [&](const std::string& options_name, const MultiHeadAttentionOptions& options,
                       std::vector<std::string> expect_zero = {}) {
    cases.add("MultiHeadAttention" + options_name, MultiHeadAttention(6, 3, rng, options), x,
              std::move(expect_zero));
  };
  add("", {}, {"bk"});  // it moves all scores of a query alike
  add(", grouped heads", {.key_value_heads = 1, .head_size = 5, .bias = false});
  add(", rotary with qk-norm", {.head_size = 4, .rotary = RotaryOptions{}, .qk_norm = true});
  add(", ALiBi in a window", {.bias = false, .alibi = true, .window = 2});
  add(", relative", {.bias = false, .relative = RelativeBuckets{.buckets = 4, .max_distance = 5}});
  add(", softcap and sinks", {.softcap = 1.5, .sinks = true});
  cases.add("MultiHeadAttention, dropout in training",
            InTraining<MultiHeadAttention>{MultiHeadAttention(6, 3, rng, {.bias = false, .dropout = 0.3})},
            x);
  cases.add("MultiHeadAttention, of a context", MultiHeadAttention(6, 3, rng, {.bias = false}),
            Inputs{{"x", x}, {"context", randn({2, 5, 6}, rng)}});
}

void add_models(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({2, 3, 4}, rng);
  const std::vector<std::string> keys{"attention.bk"};
  cases.add("TransformerBlock", TransformerBlock(4, 2, rng), x, keys);
  cases.add("TransformerBlock, norm after", TransformerBlock(4, 2, rng, {.norm_place = NormPlace::post}), x,
            keys);
  cases.add("TransformerBlock, RmsNorm and SwiGlu",
            TransformerBlock(4, 2, rng, {.norm = NormKind::rms, .d_hidden = 5, .swiglu = true}), x, keys);
  const Indices ids{{2, 0, 4}, {4, 1, 3}};
  const std::vector<std::string> keys_of_block{"blocks.0.attention.bk"};
  cases.add("Gpt", Gpt({.vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 1}, rng), ids,
            keys_of_block);
  cases.add("Gpt, as Llama",
            Gpt({.vocabulary = 5,
                 .d_model = 4,
                 .heads = 2,
                 .layers = 1,
                 .positions = Positions::rotary,
                 .norm = NormKind::rms,
                 .bias = false,
                 .tied_output = false,
                 .key_value_heads = 1,
                 .d_hidden = 5,
                 .swiglu = true},
                rng),
            ids);
  cases.add("Gpt, blocks checkpointed",
            Gpt({.vocabulary = 5,
                 .context = 3,
                 .d_model = 4,
                 .heads = 2,
                 .layers = 1,
                 .bias = false,
                 .d_hidden = 5,
                 .checkpoint_blocks = true},
                rng),
            ids);
  cases.add("Encoder", Encoder({.vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 1}, rng),
            ids, keys_of_block);
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  Rng rng(1);
  LayerCases cases;
  cases.add("Linear", Linear(5, 3, rng), randn({2, 7, 5}, rng));
  cases.add("Linear, without a bias", Linear(5, 3, rng, {.bias = false}), randn({7, 5}, rng));
  cases.add("Embedding", Embedding(5, 3, rng), Indices{{2, 0, 4}, {4, 1, 3}});
  cases.add("Embedding, with a padding id", Embedding(5, 3, rng, {.padding = 4}),
            Indices{{2, 0, 4}, {4, 1, 3}});
  cases.add("LayerNorm", LayerNorm(5), randn({2, 3, 5}, rng));
  cases.add("RmsNorm", RmsNorm(5), randn({2, 3, 5}, rng));
  add_activations(cases, rng);
  add_feed_forward(cases, rng);
  add_positions(cases, rng);
  cases.add("SelfAttention", SelfAttention(5, 3, rng), randn({2, 7, 5}, rng));
  add_multi_head_attention(cases, rng);
  add_models(cases, rng);
  cases.add("OneHeadModel", OneHeadModel(7, 5, rng), Indices{{2, 0, 4}, {6, 1, 3}});
  return std::move(cases.rows);
}

}  // namespace fovea
