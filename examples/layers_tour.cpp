// Every layer in a line or two. docs/layers.md shows these lines.

#include <fmt/core.h>

#include <cstdlib>

#include "fovea/fovea.h"

using namespace fovea;

namespace {

constexpr std::int64_t B = 2, T = 7, C = 12, H = 3, D = 4, V = 11;

void expect(const char* layer, const Tensor& y, const Shape& shape) {
  fmt::print("{:<20} {}\n", layer, to_string(y.shape()));
  if (y.shape() == shape) return;
  fmt::print("expected {}\n", to_string(shape));
  std::exit(1);
}

Indices draw_ids(Rng& rng) {
  return Indices({B, T}, [&](std::int64_t* out) {
    for (std::int64_t i = 0; i < B * T; ++i) out[i] = rng.uniform_int(V);
  });
}

void embeddings(Rng& rng) {
  const Indices ids = draw_ids(rng);
  // [embedding]
  const Embedding tokens(V, C, rng, {.padding = 0});  // id 0 gives zeros, and training keeps it so
  const Tensor x = tokens(ids);                       // (B, T) -> (B, T, C)
  const Tensor logits = tokens.as_output(x);          // the same table, tied: (B, T, C) -> (B, T, V)
  // [embedding]
  expect("Embedding", x, {B, T, C});
  expect("as_output", logits, {B, T, V});

  // [added_positions]
  const Tensor fixed = SineCosinePositions(C)(x);
  const Tensor learned = LearnedPositions(/*max_length=*/64, C, rng)(x);
  // [added_positions]
  expect("SineCosinePositions", fixed, x.shape());
  expect("LearnedPositions", learned, x.shape());

  const Tensor q = randn({B, H, T, D}, rng), k = randn({B, H, T, D}, rng), v = randn({B, H, T, D}, rng);
  // [rotary]
  const Rotary turn(D, {.layout = RotaryLayout::halves});
  const Tensor y = attention(turn(q), turn(k), v, {.mask = Mask::causal()});
  const Tensor next = turn(slice(q, -2, T - 1, T), /*offset=*/T - 1);  // one step of generation
  // [rotary]
  expect("Rotary", y, v.shape());
  expect("Rotary, one step", next, {B, H, 1, D});

  const Tensor Wq = randn({C, H * D}, rng);
  // [convert_rotary_layout]
  const Tensor as_in_the_paper = convert_rotary_layout(Wq, H, RotaryLayout::halves, RotaryLayout::adjacent);
  // [convert_rotary_layout]
  expect("convert_rotary_layout", as_in_the_paper, Wq.shape());

  // [relative]
  const RelativeBias near(H, rng, {.buckets = 32, .max_distance = 128});
  const Tensor as_t5 = attention(q, k, v, {.mask = Mask::causal(), .relative_bias = near(T, T)});
  const Tensor as_alibi = attention(q, k, v, {.mask = Mask::causal(), .relative_bias = Alibi(H)(T, T)});
  // [relative]
  expect("RelativeBias", as_t5, v.shape());
  expect("Alibi", as_alibi, v.shape());
}

void maps(const Tensor& x, Rng& rng) {
  // [linear]
  const Tensor y = Linear(C, 5, rng)(x);  // x W + b: (B, T, C) -> (B, T, 5)
  // [linear]
  expect("Linear", y, {B, T, 5});

  // [norms]
  const Tensor centered = LayerNorm(C)(x);
  const Tensor scaled = RmsNorm(C)(x);
  // [norms]
  expect("LayerNorm", centered, x.shape());
  expect("RmsNorm", scaled, x.shape());

  // [feed_forward]
  const FeedForward mlp(C, 4 * C, rng, {.activation = Activation::gelu_tanh});
  const GatedFeedForward gated(C, 8 * C / 3, rng);  // SwiGLU; with Activation::gelu it is GEGLU
  const Tensor h = gated(mlp(x));
  // [feed_forward]
  expect("two feed-forward", h, x.shape());

  // [attention]
  const SelfAttention head(C, D, rng);
  const Attention seen = head.with_weights(x);  // the output, and what each position attended to
  // [attention]
  expect("SelfAttention", seen.output, x.shape());
  expect("its weights", seen.weights, {B, T, T});

  // [sequential]
  const Sequential stack(Linear(C, 32, rng), Gelu{}, Dropout(0.1), Linear(32, 5, rng));
  fmt::print("{}\n", stack);  // "0.W", "0.b", "3.W", "3.b"
  const Tensor z = stack(x);
  // [sequential]
  expect("Sequential", z, {B, T, 5});
}

void heads_and_blocks(const Tensor& x, Rng& rng) {
  const Tensor context = randn({B, 5, C}, rng);
  // [multi_head]
  const MultiHeadAttention heads(C, H, rng, {.rotary = RotaryOptions{}, .qk_norm = true});
  const Tensor self = heads(x);                                   // causal, unless another mask is given
  const Tensor cross = heads(x, context, Mask::lengths({5, 3}));  // keys and values from a padded context
  // [multi_head]
  expect("MultiHeadAttention", self, x.shape());
  expect("to a context", cross, x.shape());

  // [cache]
  const NoGrad no_grad;
  KvCache cache = heads.cache(B, /*capacity=*/64);
  heads(slice(x, 1, 0, T - 1), cache);                      // all but the last position
  const Tensor last = heads(slice(x, 1, T - 1, T), cache);  // (B, 1, C), as in heads(x)
  // [cache]
  expect("with a cache", last, {B, 1, C});

  // [block]
  const TransformerBlock block(C, H, rng, {.mlp = MlpKind::gelu_tanh, .dropout = 0.1});
  const TransformerBlock post(C, H, rng, {.norm_place = NormPlace::post, .mlp = MlpKind::relu});
  const Tensor y = post(block(x));
  // [block]
  expect("TransformerBlock", y, x.shape());
}

void language_models(Rng& rng) {
  const Indices ids = draw_ids(rng);
  // [gpt]
  const Gpt model({.vocabulary = V, .context = 32, .d_model = C, .heads = H, .layers = 2}, rng);
  const Tensor logits = model.logits(ids);  // (B, T) -> (B, T, V)
  // [gpt]
  expect("Gpt", logits, {B, T, V});

  // [llama]
  const Gpt llama({.vocabulary = V,
                   .d_model = C,
                   .heads = H,
                   .layers = 2,
                   .positions = Positions::rotary,
                   .tied_output = false,
                   .block = {.attention = {.key_value_heads = 1, .bias = false},
                             .norm = NormKind::rms,
                             .mlp = MlpKind::swiglu}},
                  rng);
  // [llama]
  expect("Gpt, as Llama", llama.logits(ids), {B, T, V});

  // [generate]
  Gpt::Cache cache = model.cache(B);
  Tensor next =
      slice(model.logits(ids, cache), 1, T - 1, T);  // at the last position of the prompt: (B, 1, V)
  for (int step = 0; step < 5; ++step) next = model.logits(argmax(next), cache);
  // [generate]
  expect("Gpt, generating", next, {B, 1, V});
}

void encoders(Rng& rng) {
  const Indices ids = draw_ids(rng);
  // [encoder]
  const Encoder encoder({.vocabulary = V, .context = 32, .d_model = C, .heads = H, .layers = 2}, rng);
  const Tensor read =
      encoder(ids, Mask::lengths({T, 4}));  // (B, T) -> (B, T, C); the second row has 4 tokens
  // [encoder]
  expect("Encoder", read, {B, T, C});
}

void while_training(const Tensor& x, Rng& rng) {
  // [dropout]
  const Dropout drop(0.1);
  const Tensor same = drop(x);  // the identity: evaluation is the default
  {
    const TrainMode training(/*seed=*/7);
    const Tensor dropped = drop(x);  // about a tenth is 0, and the rest is scaled by 1 / 0.9
  }
  // [dropout]
  expect("Dropout", same, x.shape());

  // [recompute]
  const FeedForward block(C, 4 * C, rng);
  const Tensor y = recompute(block, x);  // keeps only x, and computes the rest again in backward
  // [recompute]
  backward(y, {.gradient = ones(y.shape())});
  expect("recompute", block.up.W.grad(), block.up.W.shape());
}

void losses(Rng& rng) {
  const Tensor logits = randn({B, T, V}, rng);
  const Indices targets = argmax(logits);
  // [cross_entropy]
  const CrossEntropy result =
      cross_entropy(logits, targets, {.ignore_index = 0, .label_smoothing = 0.1, .z_loss = 1e-4});
  fmt::print("{:.3f} nats over {} targets\n", result.loss.item(), result.count);
  // [cross_entropy]
  expect("cross_entropy", result.loss, {});

  const Tensor scores = randn({B, 5}, rng), truth = uniform({B, 5}, rng);
  // [other_losses]
  const Tensor yes_or_no = binary_cross_entropy_with_logits(scores, truth, {.pos_weight = scalar(3)});
  const Tensor distance = mean_squared_error(scores, truth);
  // [other_losses]
  expect("binary cross-entropy", yes_or_no, {});
  expect("mean_squared_error", distance, {});
}

}  // namespace

int main() {
  Rng rng(1);
  const Tensor x = randn({B, T, C}, rng);
  embeddings(rng);
  maps(x, rng);
  heads_and_blocks(x, rng);
  language_models(rng);
  encoders(rng);
  while_training(x, rng);
  losses(rng);
}
