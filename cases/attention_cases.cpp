#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "autograd/ops/reference.h"
#include "cases/cases.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"

namespace fovea {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Place {
  std::int64_t batch, head, query, key, queries, keys;
  std::int64_t ahead() const { return key - query - (keys - queries); }
};
using Sees = std::function<bool(const Place&)>;

// What of attention an oracle has to know, besides the tensors.
struct Variant {
  AttentionOptions options = {};  // their tensors come from the row's inputs
  Sees sees = [](const Place&) { return true; };
  bool bias = false, relative_bias = false, sinks = false;

  AttentionOptions with(const Inputs& in) const {
    AttentionOptions all = options;
    if (bias) all.bias = in["bias"];
    if (relative_bias) all.relative_bias = in["relative"];
    if (sinks) all.sinks = in["sinks"];
    return all;
  }
};

constexpr std::uint64_t dropout_seed = 11;

// Of element (row, key) of the weights, rows counted through (B, H, Tq): see kernels/dropout.h.
bool is_dropped(std::int64_t row, const Place& at, double p) {
  if (p == 0) return false;
  const std::int64_t group = row * ((at.keys + 63) / 64) + at.key / 64;
  const auto counter = static_cast<std::uint64_t>(group * 16 + at.key % 16);
  return philox(Rng(dropout_seed).next(), counter)[static_cast<std::size_t>(at.key % 64 / 16)] <
         std::ldexp(p, 32);
}

double score_of(const Inputs& in, const Variant& variant, const Place& at) {
  const Tensor &q = in["q"], &k = in["k"];
  const std::int64_t group = q.size(1) / k.size(1);
  double s = 0;
  for (std::int64_t d = 0; d < q.size(3); ++d) {
    s += q.at({at.batch, at.head, at.query, d}) * k.at({at.batch, at.head / group, at.key, d});
  }
  s *= variant.options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  if (const double cap = variant.options.softcap; cap > 0) s = cap * std::tanh(s / cap);
  if (variant.bias) {
    const Shape scores{q.size(0), q.size(1), at.queries, at.keys};
    s += broadcast_to(in["bias"], scores).at({at.batch, at.head, at.query, at.key});
  }
  if (variant.relative_bias) {
    const Tensor& r = in["relative"];
    s += r.at({r.size(0) == 1 ? 0 : at.head, at.key - at.query + at.queries - 1});
  }
  return s;
}

// Attention as loops: for every query, the weights of the keys it sees, and their sum of values.
Attention attend(const Inputs& in, const Variant& variant) {
  const Tensor &q = in["q"], &v = in["v"];
  const std::int64_t keys = v.size(2);
  const double p = variant.options.dropout;
  std::vector<double> outputs, weights;
  Place at{0, 0, 0, 0, q.size(2), keys};
  for (std::int64_t number = 0; number < q.size(0) * q.size(1) * q.size(2); ++number) {
    at.batch = number / at.queries / q.size(1);
    at.head = number / at.queries % q.size(1);
    at.query = number % at.queries;
    std::vector<double> row, kept;
    double total = variant.sinks ? std::exp(in["sinks"].at({at.head})) : 0;
    for (at.key = 0; at.key < keys; ++at.key) {
      row.push_back(variant.sees(at) ? std::exp(score_of(in, variant, at)) : 0);
      kept.push_back(is_dropped(number, at, p) ? 0 : 1 / (1 - p));
      total += row.back();
    }
    for (double& weight : row) weight = total > 0 ? weight / total : 0;
    weights.insert(weights.end(), row.begin(), row.end());
    for (std::int64_t d = 0; d < v.size(3); ++d) {
      double output = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double weight = row[static_cast<std::size_t>(j)] * kept[static_cast<std::size_t>(j)];
        if (weight != 0) output += weight * v.at({at.batch, at.head / (q.size(1) / v.size(1)), j, d});
      }
      outputs.push_back(output);
    }
  }
  return {from_values(outputs, {q.size(0), q.size(1), q.size(2), v.size(3)}, f64),
          from_values(weights, {q.size(0), q.size(1), q.size(2), keys}, f64)};
}

// Of (1, 2, 3, 5): head 1 sees every other key; in head 0, query 1 sees nothing.
bool in_pattern(const Place& at) { return at.head == 1 ? at.key % 2 == 0 : at.query != 1; }
Bool pattern() {
  std::vector<std::uint8_t> seen;
  for (std::int64_t i = 0; i < 30; ++i) seen.push_back(in_pattern({0, i / 15, i / 5 % 3, i % 5, 3, 5}));
  return Bool({1, 2, 3, 5}, seen);
}

// (B, H, Tq, Dv + Tk): the output and the weights in one tensor, so that one row checks both.
Tensor joined(const Attention& attention) { return concat({attention.output, attention.weights}, -1); }

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

// One head of one sequence, for small examples: (T, D) as (1, 1, T, D).
Tensor one_head(const Tensor& x) { return reshape(x, {1, 1, x.size(0), x.size(1)}); }
NamedFunction attention_of_one_head(const Mask& mask) {
  return [=](const Inputs& in) {
    return attention(one_head(in["q"]), one_head(in["k"]), one_head(in["v"]), {.mask = mask});
  };
}

// Numbers that no query may see, if they are NaN or infinite, are not seen in values or gradients either.
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

Example nothing_to_see() {
  return {.name = "nothing to see at all",
          .inputs = {{"q", tensor({{1, 2}, {3, 4}}, f64)},
                     {"k", tensor({{5, 6}, {7, 8}}, f64)},
                     {"v", tensor({{9, 1}, {2, nan}}, f64)}},
          .value = {0, 0, 0, 0},
          .cotangent = {3, 5, 7, 11},
          .gradients = {{"q", {0, 0, 0, 0}}, {"k", {0, 0, 0, 0}}, {"v", {0, 0, 0, 0}}},
          .of = attention_of_one_head(Mask::keep(Bool{false}))};
}

const Shape few_queries{1, 2, 3, 2}, few_keys{1, 2, 5, 2};

// More queries and keys than are taken at once, causal, with scores that grow along the keys, so that every
// running maximum is overtaken. Gradients are the composed form's.
Example several_tiles(Variant variant) {
  constexpr std::int64_t queries = 550, keys = 300;
  variant.options.mask = Mask::causal();
  variant.options.dropout = 0;
  variant.sees = [](const Place& at) { return at.ahead() <= 0; };
  Rng rng(5);
  const auto draw = [&](const Shape& shape) { return to(randn(shape, rng), f64); };  // f32 holds them
  const Tensor ramp = 0.02 * reshape(arange(keys, f64), {1, 1, keys, 1});
  Example special{.name = "several tiles",
                  .inputs = {{"q", abs(draw({1, 1, queries, 1}))},
                             {"k", to(to(draw({1, 1, keys, 1}) + ramp, f32), f64)},
                             {"v", draw({1, 1, keys, 1})}},
                  .cotangent = draw({queries}).to_vector()};
  if (variant.bias) special.inputs.push_back({"bias", draw({queries, keys})});
  if (variant.relative_bias) special.inputs.push_back({"relative", draw({1, queries + keys - 1})});
  if (variant.sinks) special.inputs.push_back({"sinks", draw({1})});
  special.value = attend(Inputs(special.inputs), variant).output.to_vector();
  std::vector<Tensor> leaves;
  std::vector<NamedTensor> named;
  for (const auto& [name, x] : special.inputs) {
    leaves.push_back(clone(x).set_requires_grad());
    named.push_back({name, leaves.back()});
  }
  const Tensor y = reference::attention(leaves[0], leaves[1], leaves[2], variant.with(Inputs(named)));
  const Tensor dy = from_values(special.cotangent, y.shape(), f64);
  const std::vector<Tensor> gradients = grad({y}, leaves, {.gradients = {dy}});
  for (std::size_t k = 0; k < leaves.size(); ++k)
    special.gradients.emplace_back(named[k].name, gradients[k].to_vector());
  special.of = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], variant.with(in)); };
  return special;
}

void add_masks(Cases& cases) {
  const auto row = [&](const std::string& name, const Shape& q, const Shape& k, const Mask& mask,
                       const Sees& sees, const std::vector<std::int64_t>& fixed_sizes = {}) {
    const Variant variant{.options = {.mask = mask}, .sees = sees};
    const auto inputs = [&](Case& c) {
      c.input("q", q);
      c.input("k", k);
      c.input("v", {k[0], k[1], k[2], 1});
      c.fixed_sizes = fixed_sizes;
      c.not_empty = {2};  // scores of heads of size 0 have no scale
    };
    cases.add("attention, " + name, [&](Case& c) {
      inputs(c);
      c.value = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], {.mask = mask}); };
      c.oracle = [=](const Inputs& in) { return attend(in, variant).output; };
      c.composed = [=](const Inputs& in) {
        return reference::attention(in["q"], in["k"], in["v"], {.mask = mask});
      };
      c.kernel = Kernel::attention;
      c.backward_kernel = Kernel::attention_backward;
    });
    cases.add("attention_with_weights, " + name, [&](Case& c) {
      inputs(c);
      c.value = [=](const Inputs& in) {
        return joined(attention_with_weights(in["q"], in["k"], in["v"], {.mask = mask}));
      };
      c.oracle = [=](const Inputs& in) { return joined(attend(in, variant)); };
      refuse_wrong_shapes(c);
    });
  };
  const Shape &q = few_queries, &k = few_keys;
  const auto causal = [](const Place& at) { return at.ahead() <= 0; };
  const auto near = [](const Place& at) { return std::abs(at.ahead()) < 2; };
  row("unmasked", q, k, {}, [](const Place&) { return true; });
  row("causal", q, k, Mask::causal(), causal);
  row("causal, more queries than keys", k, q, Mask::causal(), causal);
  row("window", q, k, Mask::window(2), near);
  row("causal window", q, k, Mask::causal() & Mask::window(2),
      [=](const Place& at) { return causal(at) && near(at); });
  row("keep", q, k, Mask::keep(pattern()), in_pattern, {2, 3, 5});
  row("drop", q, k, Mask::drop(!pattern()), in_pattern, {2, 3, 5});
  row("keep and causal", q, k, Mask::keep(pattern()) & Mask::causal(),
      [=](const Place& at) { return in_pattern(at) && causal(at); }, {2, 3, 5});
  row("lengths", {2, 1, 3, 2}, {2, 1, 5, 2}, Mask::lengths({3, 0}),
      [](const Place& at) { return at.key < (at.batch == 0 ? 3 : 0); }, {2});
  row("causal with lengths", {2, 1, 3, 2}, {2, 1, 5, 2}, Mask::causal() & Mask::lengths({3, 4}),
      [=](const Place& at) { return causal(at) && at.key < (at.batch == 0 ? 3 : 4); }, {2});
}

// Every option alone, and all of them.
void add_options(Cases& cases) {
  const auto row = [&](const std::string& name, const Shape& q, const Shape& k, const Variant& variant,
                       const std::vector<std::int64_t>& fixed_sizes, const Shape& bias = {3, 5}) {
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
        const TrainMode scope(dropout_seed);
        return function(in["q"], in["k"], in["v"], variant.with(in));
      };
      c.value = [=](const Inputs& in) { return call(attention, in); };
      c.oracle = [=](const Inputs& in) { return attend(in, variant).output; };
      c.composed = [=](const Inputs& in) { return call(reference::attention, in); };
      c.kernel = Kernel::attention;
      c.backward_kernel = Kernel::attention_backward;
      if (variant.bias && variant.relative_bias) c.example(several_tiles(variant));  // all but dropout
    });
  };
  const Shape &q = few_queries, &k = few_keys;
  row("softcap", q, k, {.options = {.softcap = 1.5}}, {});
  row("dropout", q, k, {.options = {.dropout = 0.4}}, {});
  row("sinks", q, k, {.sinks = true}, {});
  row("bias", q, k, {.bias = true}, {}, {1, 2, 3, 5});
  row("bias shared by heads", q, k, {.bias = true}, {});
  row("bias of keys", q, k, {.bias = true}, {}, {5});
  row("bias of queries", q, k, {.bias = true, .sinks = true}, {}, {2, 3, 1});
  row("bias by distance", q, k, {.relative_bias = true}, {3, 5, 7});
  row("grouped heads", {1, 4, 3, 2}, k, {}, {4});
  row("one head of keys", q, {1, 1, 5, 2}, {}, {});

  const auto sees = [](const Place& at) {
    return at.ahead() <= 0 && at.ahead() > -3 && at.key < (at.batch == 0 ? 5 : 2);
  };
  row("every option", {2, 4, 3, 2}, {2, 2, 5, 2},
      {.options = {.mask = Mask::causal() & Mask::window(3) & Mask::lengths({5, 2}),
                   .scale = 0.6,
                   .dropout = 0.3,
                   .softcap = 2},
       .sees = sees,
       .bias = true,
       .relative_bias = true,
       .sinks = true},
      {2, 3, 4, 5, 7});
}

void add_parts(Cases& cases) {
  cases.add("attention_weights", [](Case& c) {
    c.input("q", {1, 4, 3, 2});
    c.input("k", few_keys);
    c.input("sinks", {4});
    c.fixed_sizes = {4, 2, 3, 5};
    const AttentionOptions options{.mask = Mask::causal()};
    c.value = [=](const Inputs& in) {
      AttentionOptions all = options;
      all.sinks = in["sinks"];
      return attention_weights(in["q"], in["k"], all, {3, 0});
    };
    c.oracle = [=](const Inputs& in) {
      std::vector<NamedTensor> inputs(in.begin(), in.end());
      inputs.push_back({"v", in["k"]});
      const Tensor weights =
          attend(Inputs(inputs),
                 {.options = options, .sees = [](const Place& at) { return at.ahead() <= 0; }, .sinks = true})
              .weights;
      return concat({slice(weights, 1, 3, 4), slice(weights, 1, 0, 1)}, 1);
    };
    c.refuses<IndexError>("a head that is not there", "[attention_weights] head 4",
                          [](const Inputs& in) { return attention_weights(in["q"], in["k"], {}, {4}); });
  });
  cases.add("attention_scores", [](Case& c) {
    c.input("q", few_queries);
    c.input("k", few_keys);
    c.not_empty = {2};
    const Variant variant{.options = {.scale = 0.6, .softcap = 2}};
    c.value = [=](const Inputs& in) { return attention_scores(in["q"], in["k"], variant.options); };
    c.oracle = [=](const Inputs& in) {
      const Tensor &q = in["q"], &k = in["k"];
      std::vector<double> scores;
      Place at{0, 0, 0, 0, q.size(2), k.size(2)};
      for (at.head = 0; at.head < q.size(1); ++at.head) {
        for (at.query = 0; at.query < at.queries; ++at.query) {
          for (at.key = 0; at.key < at.keys; ++at.key) scores.push_back(score_of(in, variant, at));
        }
      }
      return from_values(scores, {1, q.size(1), at.queries, at.keys}, f64);
    };
  });
  cases.add("attention_softmax", [](Case& c) {
    c.input("scores", {1, 2, 3, 5});
    c.input("sinks", {2});
    c.value = [](const Inputs& in) { return attention_softmax(in["scores"], in["sinks"]); };
    c.oracle = [](const Inputs& in) {
      const Tensor e = exp(in["scores"]), sink = exp(in["sinks"]);
      return e / (sum(e, -1, keepdims) + reshape(sink, {sink.numel(), 1, 1}));
    };
    c.refuses<ShapeError>("a sink too many", "[attention_softmax]",
                          [](const Inputs& in) { return attention_softmax(in["scores"], zeros({3}, f64)); });
  });
  cases.add("attention_output", [](Case& c) {
    c.input("weights", {1, 4, 3, 5});
    c.input("v", few_keys);
    c.fixed_sizes = {4, 2};
    c.value = [](const Inputs& in) { return attention_output(in["weights"], in["v"]); };
    c.oracle = [](const Inputs& in) {
      const auto group = [&](std::int64_t g) {
        return matmul(slice(in["weights"], 1, 2 * g, 2 * g + 2), slice(in["v"], 1, g, g + 1));
      };
      return concat({group(0), group(1)}, 1);
    };
    c.refuses<ShapeError>("values for other keys", "[attention_output]", [](const Inputs& in) {
      return attention_output(in["weights"], zeros({1, 2, 4, 2}, f64));
    });
  });
  cases.add("alibi_bias", [](Case& c) {
    c.input("slopes", {3});
    // Two queries, at the last two of four keys.
    c.value = [](const Inputs& in) { return alibi_bias(in["slopes"], 2, 4); };
    c.oracle = [](const Inputs& in) {
      return map_elements(reshape(in["slopes"], {in["slopes"].numel(), 1}), tensor({3, 2, 1, 0, 1}, f64),
                          [](double slope, double distance) { return -slope * distance; });
    };
    c.refuses<ShapeError>("slopes with two axes", "[alibi_bias]", [](const Inputs&) {
      return alibi_bias(zeros({2, 1}), 2, 4);
    });
  });
}

// Options without meaning.
void refuse_options(Case& c) {
  const auto refuses = [&]<class E>(std::type_identity<E>, const std::string& what, const std::string& text,
                                    const std::function<AttentionOptions()>& options) {
    c.refuses<E>(what, text,
                 [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], options()); });
  };
  const std::type_identity<ShapeError> shape;
  const std::type_identity<ValueError> value;
  refuses(shape, "a mask that does not fit", "[mask]", [] {
    return AttentionOptions{.mask = Mask::keep(Bool{true, false})};
  });
  refuses(shape, "lengths for another batch", "[mask]", [] {
    return AttentionOptions{.mask = Mask::lengths({1, 2})};
  });
  refuses(shape, "a bias that does not fit", "[attention]", [] {
    return AttentionOptions{.bias = zeros({3, 4}, f64)};
  });
  refuses(shape, "a bias by distance of another size", "(2, 7) or (1, 7), and has (2, 8)", [] {
    return AttentionOptions{.relative_bias = zeros({2, 8}, f64)};
  });
  refuses(shape, "a sink too many", "sinks need shape (H,) = (2,)",
          [] { return AttentionOptions{.sinks = zeros({3}, f64)}; });
  refuses(value, "a negative softcap", "[attention] softcap -1",
          [] { return AttentionOptions{.softcap = -1}; });
  refuses(value, "a scale that is not a number", "[attention] scale nan",
          [] { return AttentionOptions{.scale = nan}; });
  refuses(value, "dropout of 2", "[attention] dropout of 2", [] { return AttentionOptions{.dropout = 2}; });
}

void add_self_attention(Cases& cases, const std::string& name, const Shape& shape, const Mask& mask,
                        const Sees& sees) {
  cases.add(name, [&](Case& c) {
    c.input("x", shape);
    for (const char* weight : {"Wq", "Wk", "Wv"}) c.input(weight, {5, 2}, {-0.6, 0.6});
    c.input("Wo", {2, 5});
    c.not_empty = {2};
    c.value = [=](const Inputs& in) {
      const Attention y = self_attention(in["x"], in["Wq"], in["Wk"], in["Wv"], in["Wo"], mask);
      return concat({y.output, y.weights}, -1);
    };
    c.oracle = [=](const Inputs& in) {
      const Tensor& x = in["x"];
      const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1, time = x.size(-2);
      const auto project = [&](const char* W) {
        return reshape(matmul(reshape(x, {batch, 1, time, x.size(-1)}), in[W]),
                       {batch, 1, time, in[W].size(1)});
      };
      const Tensor q = project("Wq");
      const Inputs projected({{"q", q}, {"k", project("Wk")}, {"v", project("Wv")}});
      const Attention heads = attend(projected, {.sees = sees});
      const Tensor y = joined({matmul(heads.output, in["Wo"]), heads.weights});
      Shape result = x.shape();
      result.back() = y.size(-1);
      return reshape(y, result);
    };
    c.refuses<ShapeError>("one axis only", "[self_attention]", [](const Inputs& in) {
      self_attention(zeros({5}, f64), in["Wq"], in["Wk"], in["Wv"], in["Wo"]);
    });
    c.refuses<ShapeError>("other channels", "64 channels, input has 5", [](const Inputs& in) {
      self_attention(in["x"], zeros({64, 2}, f64), in["Wk"], in["Wv"], in["Wo"]);
    });
  });
}

}  // namespace

void add_attention_cases(Cases& cases) {
  const auto plain = [&](const std::string& name, const AttentionOptions& options) {
    cases.add(name, [&](Case& c) {
      c.input("q", {1, 2, 3, 7});
      c.input("k", {1, 2, 5, 7});
      c.input("v", {1, 2, 5, 3});
      c.not_empty = {7};
      c.value = [=](const Inputs& in) { return attention(in["q"], in["k"], in["v"], options); };
      c.oracle = [=](const Inputs& in) { return attend(in, {.options = options}).output; };
      refuse_options(c);
      refuse_wrong_shapes(c);
      c.example(hidden_numbers("padding holds NaN", Mask::lengths({2})));
      c.example(hidden_numbers("a key hidden from all holds NaN", Mask::drop(Bool{false, false, true})));
      c.example(nothing_to_see());
      c.example(several_tiles({}));
    });
  };
  plain("attention", {});
  plain("attention, with a scale", {.scale = 0.7});
  add_masks(cases);
  add_options(cases);
  add_parts(cases);
  const auto causal = [](const Place& at) { return at.ahead() <= 0; };
  add_self_attention(cases, "self_attention", {2, 3, 5}, Mask::causal(), causal);
  add_self_attention(cases, "self_attention, without a batch", {3, 5}, Mask::causal(), causal);
  add_self_attention(cases, "self_attention, seeing everything", {2, 3, 5}, {},
                     [](const Place&) { return true; });
}

}  // namespace fovea
