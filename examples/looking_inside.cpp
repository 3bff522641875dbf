// Looking inside: values of a model are read, replaced, differentiated and drawn. docs/inspect.md shows these
// lines and what they print.

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "expect.h"
#include "fovea/fovea.h"

using namespace fovea;

namespace {

constexpr std::int64_t B = 2, T = 7, C = 12, H = 3, D = 4, V = 11;
Indices draw_ids(Rng& rng) {
  return Indices({B, T}, [&](std::int64_t* out) {
    for (std::int64_t i = 0; i < B * T; ++i) out[i] = rng.uniform_int(V);
  });
}

void read_and_replace(const Gpt& model, const Indices& ids, const Indices& others) {
  const Tensor logits = model.logits(ids);
  {
    // [hooks]
    Hooks hooks(model);
    hooks.record("blocks.*.attention.weights").replace("blocks.1.attention.heads", [](const Tapped& tapped) {
      return tapped.value * reshape(tensor({1, 0, 1}), {H, 1, 1});  // (B, H, T, D) without head 1
    });
    const Tensor ablated = model.logits(ids);
    const Tensor map = hooks["blocks.0.attention.weights"];  // (B, H, T, T), rows summing to 1
    // [hooks]
    // [records]
    for (const Tapped& tapped : hooks.records()) fmt::print("{} {}\n", tapped.path(), tapped.value.shape());
    // [records]
    fmt::print("\n");
    expect(distance(ablated, logits) > 1e-4, "without head 1");
    expect(distance(sum(map, -1), ones({B, H, T})) < 1e-6, "rows sum to 1");
  }
  // [patch]
  Tensor elsewhere;  // what block 0 gives for other ids
  {
    Hooks hooks(model);
    hooks.record("blocks.0.output");
    model.logits(others);
    elsewhere = hooks["blocks.0.output"];
  }
  Hooks hooks(model);
  hooks.replace("blocks.0.output", [&](const Tapped& tapped) {
    const Tensor now = slice(tapped.value, 1, 0, T - 1), last = slice(elsewhere, 1, T - 1, T);
    return concat({now, last}, 1);  // (B, T, C), of which the last position is from there
  });
  const Tensor patched = model.logits(ids);
  // [patch]
  expect(distance(slice(patched, 1, 0, T - 1), slice(logits, 1, 0, T - 1)) == 0, "earlier positions stay");
  expect(distance(slice(patched, 1, T - 1, T), slice(logits, 1, T - 1, T)) > 1e-4, "the last one changes");
}

void differentiate(const Gpt& model, const Indices& ids, const Indices& targets) {
  // [gradient]
  Hooks hooks(model);
  hooks.record("*.weights").record("blocks.*.output");
  const Tensor loss = cross_entropy(model.logits(ids), targets).loss;
  const Tensor weights = hooks["blocks.1.attention.weights"];
  const Tensor by_weights = grad({loss}, {weights}, {.retain_graph = true})[0];  // (B, H, T, T)
  const Tensor by_output = grad({loss}, {hooks["blocks.0.output"]})[0];          // (B, T, C)
  // [gradient]
  expect(by_weights.shape() == weights.shape() && max(abs(by_output)).item() > 0,
         "gradients of values inside");

  // [logit_lens]
  const Tensor early = call(*model.norm, hooks["blocks.0.output"]);
  const Tensor guess = model.token_embedding.as_output(early);  // the logits, had block 1 added nothing
  // [logit_lens]
  expect(guess.shape() == Shape{B, T, V}, "logit lens");
}

void attention_weights_of_ops(Rng& rng) {
  const Tensor q = randn({B, H, T, D}, rng), k = randn({B, H, T, D}, rng), v = randn({B, H, T, D}, rng);
  // [attention]
  const AttentionOptions options{.mask = Mask::causal()};
  const Tensor fast = attention(q, k, v, options);                     // the fused kernel: no weights exist
  const auto [y, weights] = attention_with_weights(q, k, v, options);  // made of ops
  const Tensor of_one_head = attention_weights(q, k, options, Indices({2}));  // (B, 1, T, T)
  // [attention]
  expect(distance(fast, y) < 1e-5, "the same output");
  expect(distance(of_one_head, slice(weights, 1, 2, 3)) < 1e-6, "weights of one head");
}

void draw(Rng& rng) {
  // A head whose queries equal its keys, over one-hot words: it looks for the same word.
  const std::vector<std::string> words = {"the", "cat", "and", "the", "dog"};
  SelfAttention head(4, 4, rng);
  head.Wq = head.Wk = 2.5 * eye(4);
  const Tensor x = embedding(eye(4), Indices({0, 1, 2, 0, 3}));
  // [heat_map]
  const Tensor map = head.with_weights(x).weights;                 // (T, T)
  fmt::print("{}\n", heat_map(words, words, map, {.width = 60}));  // every query
  fmt::print("{}\n", heat_map(words, map[3]));                     // query 3 alone
  // [heat_map]
  expect(std::abs(sum(map[3]).item() - 1) < 1e-6, "a row sums to 1");
}

// [tap]
struct Gated {
  Linear in, gate;

  Gated(std::int64_t channels, Rng& rng) : in(channels, channels, rng), gate(channels, channels, rng) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor open = tap(this, "open", sigmoid(gate(x)));  // what a hook reads, or puts in its place
    return open * in(x);
  }

  static void visit(const Gated& self, Visitor& v) {
    v("in", self.in);
    v("gate", self.gate);
  }
};
// [tap]

void own_layer(Rng& rng) {
  const Gated layer(C, rng);
  Hooks hooks(layer);
  hooks.replace("open", [](const Tapped& tapped) { return 0.0 * tapped.value; });
  expect(max(abs(layer(randn({T, C}, rng)))).item() == 0, "a closed gate");
}

void members_and_partial_load(const Gpt& model, Rng& rng) {
  // [members]
  for (const Member& member : members(model)) {
    if (name_matches("blocks.0.mlp.*", member.name)) {
      fmt::print("{} {}\n", member.name, member.tensor->shape());
    }
  }
  // [members]
  fmt::print("\n");

  // [partial_load]
  // This model has two words more, and an output layer that is not tied to the token embedding.
  Gpt other({.vocabulary = V + 2, .context = 32, .d_model = C, .heads = H, .layers = 2, .tied_output = false},
            rng);
  const LoadReport report = load(other, state(model), {.partial = true});
  fmt::print("{}\n", to_string(report));
  // [partial_load]
  expect(other.blocks[1].attention.Wq.to_vector() == model.blocks[1].attention.Wq.to_vector(),
         "partial load");
  expect(report.missing.size() == 1 && report.misshaped.size() == 1, "what did not fit");
}

}  // namespace

int main() {
  Rng rng(1);
  const Gpt model({.vocabulary = V, .context = 32, .d_model = C, .heads = H, .layers = 2}, rng);
  const Indices ids = draw_ids(rng), others = draw_ids(rng);
  read_and_replace(model, ids, others);
  differentiate(model, ids, others);
  attention_weights_of_ops(rng);
  draw(rng);
  own_layer(rng);
  members_and_partial_load(model, rng);
  return failures == 0 ? 0 : 1;
}
