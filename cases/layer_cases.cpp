#include "cases/layer_cases.h"

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/ops/attention.h"
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
    const TrainMode scope(7);
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
      return attention(x, x, x, {.relative_bias = bias(x.size(2), x.size(2), x.dtype())});
    } else {
      return attention(x, x, x, {.mask = Mask::causal(), .relative_bias = bias(x.size(2), x.size(2))});
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
  const Tensor heads = randn({2, 3, 5, 2}, rng);
  cases.add("Rotary, halves", Rotary(2), heads);
  cases.add("Rotary, adjacent", Rotary(6, {.pairing = RotaryLayout::adjacent}), randn({2, 3, 6}, rng));
  cases.add("RelativeBias, in attention",
            BiasedAttention<RelativeBias>{RelativeBias(3, rng, {.buckets = 4, .max_distance = 5})}, heads);
  cases.add("Alibi, in attention", BiasedAttention<Alibi>{Alibi(3)}, heads);
  const Tensor x = randn({2, 3, 5}, rng);
  cases.add("AddedPositions, learned", AddedPositions(Positions::learned, 3, 5, rng), x);
  cases.add("AddedPositions, sine-cosine", AddedPositions(Positions::sine_cosine, 3, 5, rng), x);
  cases.add("AddedPositions, none", AddedPositions(Positions::none, 3, 5, rng), x);
}

void add_attention(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({1, 5, 6}, rng);
  // One number added to all scores of a query changes nothing, so a bias of the keys has no effect, unless
  // they are turned, normalised or bent, or there is a sink.
  const std::vector<std::string> key_bias{"bk"}, inner_key_bias{"layer.bk"};
  const auto attention = [&](const MultiHeadAttentionOptions& options) {
    return MultiHeadAttention(6, 3, rng, options);
  };
  cases.add("MultiHeadAttention", attention({}), x, key_bias);
  cases.add("MultiHeadAttention, grouped heads of another size",
            MultiHeadAttention(5, 4, rng, {.key_value_heads = 2, .head_size = 3}), randn({1, 3, 5}, rng),
            key_bias);
  cases.add("MultiHeadAttention, without biases", attention({.bias = false}), x);
  cases.add("MultiHeadAttention, rotary halves", attention({.rotary = RotaryOptions{}}), x);
  cases.add("MultiHeadAttention, rotary adjacent",
            attention({.rotary = RotaryOptions{.pairing = RotaryLayout::adjacent, .base = 50}}), x);
  cases.add("MultiHeadAttention, ALiBi", attention({.alibi = true}), x, key_bias);
  cases.add("MultiHeadAttention, relative",
            attention({.relative_bias = RelativeBuckets{.buckets = 4, .max_distance = 3}}), x, key_bias);
  cases.add("MultiHeadAttention, window", attention({.window = 2}), x, key_bias);
  cases.add("MultiHeadAttention, norms of queries and keys", attention({.qk_norm = true}), x);
  cases.add("MultiHeadAttention, softcap", attention({.softcap = 1.5}), x);
  cases.add("MultiHeadAttention, sinks", attention({.sinks = true}), x);
  cases.add("MultiHeadAttention, in training", InTraining<MultiHeadAttention>{attention({.dropout = 0.3})}, x,
            inner_key_bias);
  cases.add("MultiHeadAttention, to a context", attention({}),
            Inputs{{"x", randn({2, 3, 6}, rng)}, {"context", randn({2, 5, 6}, rng)}}, key_bias);
}

void add_blocks(LayerCases& cases, Rng& rng) {
  const Tensor x = randn({1, 3, 4}, rng);
  const std::vector<std::string> key_bias{"attention.bk"};
  const auto block = [&](const TransformerBlockOptions& options) {
    return TransformerBlock(4, 2, rng, options);
  };
  cases.add("TransformerBlock, norms before", block({.d_hidden = 7}), x, key_bias);
  cases.add("TransformerBlock, norms after", block({.norm_place = NormPlace::post, .d_hidden = 7}), x,
            key_bias);
  cases.add("TransformerBlock, RmsNorm and SwiGlu",
            block({.norm = NormKind::rms, .d_hidden = 5, .swiglu = true}), x, key_bias);
  cases.add("TransformerBlock, in training",
            InTraining<TransformerBlock>{block({.d_hidden = 5, .dropout = 0.3})}, x, {"layer.attention.bk"});
}

void add_models(LayerCases& cases, Rng& rng) {
  const Indices ids{{2, 0, 4}};
  const auto key_biases = [](const std::string& prefix = "") {
    return std::vector<std::string>{prefix + "blocks.0.attention.bk", prefix + "blocks.1.attention.bk"};
  };
  // Words and weights larger than at first, so that attention is not nearly the mean of all it sees.
  const auto lively = [&](auto model) {
    model.words.table = parameter(30.0 * model.words.table);
    for (TransformerBlock& block : model.blocks) block.initialise(0.5, 0.3, rng);
    return model;
  };
  GptConfig gpt{.vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 2, .d_hidden = 3};
  cases.add("Gpt", lively(Gpt(gpt, rng)), ids, key_biases());
  cases.add("Gpt, in training", InTraining<Gpt>{lively(Gpt(gpt, rng))}, ids, key_biases("layer."));
  gpt.checkpoint_blocks = true;
  cases.add("Gpt, checkpointed", lively(Gpt(gpt, rng)), ids, key_biases());
  gpt = {.vocabulary = 5,
         .d_model = 4,
         .heads = 2,
         .layers = 1,
         .positions = Positions::rotary,
         .norm = NormKind::rms,
         .bias = false,
         .tied_output = false,
         .key_value_heads = 1,
         .d_hidden = 3,
         .swiglu = true,
         .qk_norm = true};
  cases.add("Gpt, as Llama", lively(Gpt(gpt, rng)), ids);

  EncoderConfig encoder{.vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 2, .d_hidden = 3};
  cases.add("Encoder, norms before", lively(Encoder(encoder, rng)), ids, key_biases());
  encoder.norm_place = NormPlace::post;
  cases.add("Encoder, norms after", lively(Encoder(encoder, rng)), ids, key_biases());
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
  add_attention(cases, rng);
  add_blocks(cases, rng);
  add_models(cases, rng);
  cases.add("SelfAttention", SelfAttention(5, 3, rng), randn({2, 7, 5}, rng));
  cases.add("OneHeadModel", OneHeadModel(7, 5, rng), Indices{{2, 0, 4}, {6, 1, 3}});
  return std::move(cases.rows);
}

}  // namespace fovea
