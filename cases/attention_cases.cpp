#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "cases/attention_oracle.h"
#include "cases/cases.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"

namespace fovea {

using cases::attention_by_loops;
using cases::AttentionVariant;
using cases::every_key;
using cases::keys_up_to_query;
using cases::output_and_weights;
using cases::ScorePlace;
using cases::Visible;

namespace {

const Shape few_queries{1, 2, 3, 2}, few_keys{1, 2, 5, 2};

// --- Calls that must throw ---------------------------------------------------------------------------------

void refuse_wrong_shapes(Case& c) {
  const auto refuses = [&](const std::string& what, const Shape& q, const Shape& k, const Shape& v) {
    c.refuses<ShapeError>(what, "[attention]",
                          [=](const Inputs&) { return attention(zeros(q), zeros(k), zeros(v)); });
  };
  refuses("keys of another head size", {1, 2, 3, 5}, {1, 2, 7, 3}, {1, 2, 7, 5});
  refuses("fewer values than keys", {1, 2, 3, 5}, {1, 2, 7, 5}, {1, 2, 6, 5});
  refuses("another batch", {1, 2, 3, 5}, {2, 2, 7, 5}, {2, 2, 7, 5});
  refuses("key heads that do not divide the query heads", {1, 2, 3, 5}, {1, 3, 7, 5}, {1, 3, 7, 5});
  refuses("no axis of heads", {1, 3, 5}, {1, 7, 5}, {1, 7, 5});
}

void refuse_wrong_attention_options(Case& c) {
  const auto refuses = [&]<class E>(std::type_identity<E>, const std::string& what, const std::string& text,
                                    const std::function<AttentionOptions()>& options) {
    c.refuses<E>(what, text,
                 [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], options()); });
  };
  const std::type_identity<ShapeError> shape;
  const std::type_identity<ValueError> value;
  refuses(shape, "a mask that does not broadcast", "[mask]", [] {
    return AttentionOptions{.mask = Mask::keep(Bool{true, false})};
  });
  refuses(shape, "lengths for another batch", "[mask]", [] {
    return AttentionOptions{.mask = Mask::lengths({1, 2})};
  });
  refuses(shape, "a bias that does not broadcast", "[attention]", [] {
    return AttentionOptions{.bias = zeros({3, 4}, f64)};
  });
  refuses(shape, "a relative bias of another size", "(2, 7) or (1, 7), and has (2, 8)", [] {
    return AttentionOptions{.relative_bias = zeros({2, 8}, f64)};
  });
  refuses(shape, "more sinks than heads", "sinks need shape (H,) = (2,)",
          [] { return AttentionOptions{.sinks = zeros({3}, f64)}; });
  refuses(value, "a negative softcap", "[attention] softcap -1",
          [] { return AttentionOptions{.softcap = -1}; });
  refuses(value, "a scale that is not a number", "[attention] scale nan",
          [] { return AttentionOptions{.scale = nan}; });
  refuses(value, "dropout of 2", "[attention] dropout of 2", [] { return AttentionOptions{.dropout = 2}; });
}

// --- Examples ----------------------------------------------------------------------------------------------

// Attention of one head in one sequence: takes (T, D) as (1, 1, T, D).
NamedFunction attention_of_one_head(const Mask& mask) {
  return [=](const Inputs& in) {
    const auto one_head = [](const Tensor& x) { return reshape(x, {1, 1, x.size(0), x.size(1)}); };
    return attention(one_head(in["q"]), one_head(in["k"]), one_head(in["v"]), {.mask = mask});
  };
}

// NaN and infinity in a key and value that the mask hides from every query have no influence on any value or
// gradient.
Example hidden_numbers(const std::string& name, const Mask& mask) {
  return {.name = name,
          .inputs = {{"q", tensor({{1, 2}, {3, 4}}, f64)},
                     {"k", tensor({{0, 0}, {0, 0}, {nan, infinity}}, f64)},
                     {"v", tensor({{4, 1}, {8, 3}, {nan, -infinity}}, f64)}},
          .value = {6, 2, 6, 2},
          .cotangent = {1, 2, 3, 5},
          .gradients = {{"q", {0, 0, 0, 0}}, {"v", {2, 3.5, 2, 3.5, 0, 0}}},
          .of = attention_of_one_head(mask)};
}

Example every_key_hidden() {
  return {.name = "every key is masked",
          .inputs = {{"q", tensor({{1, 2}, {3, 4}}, f64)},
                     {"k", tensor({{5, 6}, {7, 8}}, f64)},
                     {"v", tensor({{9, 1}, {2, nan}}, f64)}},
          .value = {0, 0, 0, 0},
          .cotangent = {3, 5, 7, 11},
          .gradients = {{"q", {0, 0, 0, 0}}, {"k", {0, 0, 0, 0}}, {"v", {0, 0, 0, 0}}},
          .of = attention_of_one_head(Mask::keep(Bool{false}))};
}

// The inputs of an example with more queries and keys than one block of the kernel, in numbers that f32 can
// represent. Scores grow along the keys, so that the running maximum of a query changes in every block.
std::vector<NamedTensor> inputs_of_several_blocks(const AttentionVariant& variant, std::int64_t queries,
                                                  std::int64_t keys, Rng& rng) {
  const auto draw = [&](const Shape& shape) { return to(randn(shape, rng), f64); };
  const Tensor ramp = 0.02 * reshape(arange(keys, f64), {1, 1, keys, 1});
  std::vector<NamedTensor> inputs{{"q", abs(draw({1, 1, queries, 1}))},
                                  {"k", to(to(draw({1, 1, keys, 1}) + ramp, f32), f64)},
                                  {"v", draw({1, 1, keys, 1})}};
  if (variant.bias) inputs.push_back({"bias", draw({queries, keys})});
  if (variant.relative_bias) inputs.push_back({"relative", draw({1, queries + keys - 1})});
  if (variant.sinks) inputs.push_back({"sinks", draw({1})});
  return inputs;
}

// Causal attention over several blocks. The expected gradients are those of the reference form.
Example several_blocks(AttentionVariant variant) {
  constexpr std::int64_t queries = 550, keys = 300;
  variant.options.mask = Mask::causal();
  variant.options.dropout = 0;
  variant.visible = keys_up_to_query;
  Rng rng(5);
  Example example{.name = "several blocks", .cotangent = to(randn({queries}, rng), f64).to_vector()};
  example.inputs = inputs_of_several_blocks(variant, queries, keys, rng);
  example.value = attention_by_loops(Inputs(example.inputs), variant).output.to_vector();
  std::vector<Tensor> leaves;
  std::vector<NamedTensor> named;
  for (const auto& [name, x] : example.inputs) {
    leaves.push_back(clone(x).set_requires_grad());
    named.push_back({name, leaves.back()});
  }
  const Tensor y = reference::attention(leaves[0], leaves[1], leaves[2], variant.with(Inputs(named)));
  const Tensor dy = from_values(example.cotangent, y.shape(), f64);
  const std::vector<Tensor> gradients = grad({y}, leaves, {.gradients = {dy}});
  for (std::size_t k = 0; k < leaves.size(); ++k)
    example.gradients.emplace_back(named[k].name, gradients[k].to_vector());
  example.of = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], variant.with(in)); };
  return example;
}

// --- Rows --------------------------------------------------------------------------------------------------

void add_plain(Cases& cases, const std::string& name, const AttentionOptions& options) {
  cases.add(name, [&](Case& c) {
    c.input("q", {1, 2, 3, 7});
    c.input("k", {1, 2, 5, 7});
    c.input("v", {1, 2, 5, 3});
    c.not_empty = {7};
    c.value = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], options); };
    c.oracle = [=](const Inputs& in) { return attention_by_loops(in, {.options = options}).output; };
    refuse_wrong_attention_options(c);
    refuse_wrong_shapes(c);
    c.example(hidden_numbers("padding holds NaN", Mask::lengths({2})));
    c.example(hidden_numbers("a key hidden from all holds NaN", Mask::drop(Bool{false, false, true})));
    c.example(every_key_hidden());
    c.example(several_blocks({}));
  });
}

// One mask, in attention and in attention_with_weights. `visible` is the mask as the oracle knows it.
void add_masked(Cases& cases, const std::string& name, const Shape& q, const Shape& k, const Mask& mask,
                const Visible& visible, const std::vector<std::int64_t>& fixed_sizes = {}) {
  const AttentionVariant variant{.options = {.mask = mask}, .visible = visible};
  const auto inputs = [&](Case& c) {
    c.input("q", q);
    c.input("k", k);
    c.input("v", {k[0], k[1], k[2], 1});
    c.fixed_sizes = fixed_sizes;
    c.not_empty = {2};  // heads of size 0 have no scale 1 / sqrt(D)
  };
  cases.add("attention, " + name, [&](Case& c) {
    inputs(c);
    c.value = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], {.mask = mask}); };
    c.oracle = [=](const Inputs& in) { return attention_by_loops(in, variant).output; };
    c.reference = [=](const Inputs& in) {
      return reference::attention(in["q"], in["k"], in["v"], {.mask = mask});
    };
    c.kernel = "attention";
    c.backward_kernel = "attention_backward";
  });
  cases.add("attention_with_weights, " + name, [&](Case& c) {
    inputs(c);
    c.value = [=](const Inputs& in) {
      return output_and_weights(attention_with_weights(in["q"], in["k"], in["v"], {.mask = mask}));
    };
    c.oracle = [=](const Inputs& in) { return output_and_weights(attention_by_loops(in, variant)); };
    refuse_wrong_shapes(c);
  });
}

// A mask of shape (1, 2, 3, 5): head 0 sees every key, except that query 1 sees none; head 1 sees every other
// key.
bool in_pattern(const ScorePlace& at) { return at.head == 1 ? at.key % 2 == 0 : at.query != 1; }
Bool pattern() {
  std::vector<std::uint8_t> kept;
  for (std::int64_t i = 0; i < 30; ++i) kept.push_back(in_pattern({0, i / 15, i / 5 % 3, i % 5, 3, 5}));
  return Bool({1, 2, 3, 5}, kept);
}

void add_masks(Cases& cases) {
  const Shape &q = few_queries, &k = few_keys;
  const auto near = [](const ScorePlace& at) { return std::abs(at.ahead()) < 2; };
  add_masked(cases, "unmasked", q, k, {}, every_key);
  add_masked(cases, "causal", q, k, Mask::causal(), keys_up_to_query);
  add_masked(cases, "causal, more queries than keys", k, q, Mask::causal(), keys_up_to_query);
  add_masked(cases, "window", q, k, Mask::window(2), near);
  add_masked(cases, "causal window", q, k, Mask::causal() & Mask::window(2),
             [=](const ScorePlace& at) { return keys_up_to_query(at) && near(at); });
  add_masked(cases, "keep", q, k, Mask::keep(pattern()), in_pattern, {2, 3, 5});
  add_masked(cases, "drop", q, k, Mask::drop(!pattern()), in_pattern, {2, 3, 5});
  add_masked(cases, "keep and causal", q, k, Mask::keep(pattern()) & Mask::causal(),
             [](const ScorePlace& at) { return in_pattern(at) && keys_up_to_query(at); }, {2, 3, 5});
  add_masked(cases, "lengths", {2, 1, 3, 2}, {2, 1, 5, 2}, Mask::lengths({3, 0}),
             [](const ScorePlace& at) { return at.key < (at.batch == 0 ? 3 : 0); }, {2});
  add_masked(cases, "causal with lengths", {2, 1, 3, 2}, {2, 1, 5, 2}, Mask::causal() & Mask::lengths({3, 4}),
             [](const ScorePlace& at) { return keys_up_to_query(at) && at.key < (at.batch == 0 ? 3 : 4); },
             {2});
}

void add_variant(Cases& cases, const std::string& name, const Shape& q, const Shape& k,
                 const AttentionVariant& variant, const std::vector<std::int64_t>& fixed_sizes = {},
                 const Shape& bias = {3, 5}) {
  cases.add("attention, " + name, [&](Case& c) {
    c.input("q", q);
    c.input("k", k);
    c.input("v", k);
    if (variant.bias) c.input("bias", bias);
    if (variant.relative_bias) c.input("relative", {q[1], q[2] + k[2] - 1});
    if (variant.sinks) c.input("sinks", {q[1]});
    c.fixed_sizes = fixed_sizes;
    c.not_empty = {2};
    c.f32_roundings = 64;
    const auto call = [=](auto function, const Inputs& in) {
      const TrainMode scope(cases::dropout_seed);
      return function(in["q"], in["k"], in["v"], variant.with(in));
    };
    c.value = [=](const Inputs& in) { return call(attention, in); };
    c.oracle = [=](const Inputs& in) { return attention_by_loops(in, variant).output; };
    c.reference = [=](const Inputs& in) { return call(reference::attention, in); };
    c.kernel = "attention";
    c.backward_kernel = "attention_backward";
    if (variant.bias && variant.relative_bias) c.example(several_blocks(variant));
  });
}

// Every option alone, and all of them together.
void add_options(Cases& cases) {
  const Shape &q = few_queries, &k = few_keys;
  add_variant(cases, "softcap", q, k, {.options = {.softcap = 1.5}});
  add_variant(cases, "dropout", q, k, {.options = {.dropout = 0.4}});
  add_variant(cases, "sinks", q, k, {.sinks = true});
  add_variant(cases, "bias", q, k, {.bias = true}, {}, {1, 2, 3, 5});
  add_variant(cases, "bias shared by heads", q, k, {.bias = true});
  add_variant(cases, "bias of keys", q, k, {.bias = true}, {}, {5});
  add_variant(cases, "bias of queries", q, k, {.bias = true, .sinks = true}, {}, {2, 3, 1});
  add_variant(cases, "relative bias", q, k, {.relative_bias = true}, {3, 5, 7});
  add_variant(cases, "grouped heads", {1, 4, 3, 2}, k, {}, {4});
  add_variant(cases, "one head of keys", q, {1, 1, 5, 2}, {});
  const auto visible = [](const ScorePlace& at) {
    return at.ahead() <= 0 && at.ahead() > -3 && at.key < (at.batch == 0 ? 5 : 2);
  };
  add_variant(cases, "every option", {2, 4, 3, 2}, {2, 2, 5, 2},
              {.options = {.mask = Mask::causal() & Mask::window(3) & Mask::lengths({5, 2}),
                           .scale = 0.6,
                           .dropout = 0.3,
                           .softcap = 2},
               .visible = visible,
               .bias = true,
               .relative_bias = true,
               .sinks = true},
              {2, 3, 4, 5, 7});
}

}  // namespace

void add_attention_cases(Cases& cases) {
  add_plain(cases, "attention", {});
  add_plain(cases, "attention, with a scale", {.scale = 0.7});
  add_masks(cases);
  add_options(cases);
}

}  // namespace fovea
