#include "cases/attention_oracle.h"
#include "cases/cases.h"

// The parts that attention is made of, each as an op of its own.

namespace fovea {

using cases::attention_by_loops;
using cases::AttentionVariant;
using cases::keys_up_to_query;
using cases::score_by_loops;
using cases::ScorePlace;

namespace {

void add_scores(Cases& cases) {
  cases.add("attention_scores", [](Case& c) {
    c.input("q", {1, 2, 3, 2});
    c.input("k", {1, 2, 5, 2});
    c.not_empty = {2};
    const AttentionVariant variant{.options = {.scale = 0.6, .softcap = 2}};
    c.value = [=](const Inputs& in) { return attention_scores(in["q"], in["k"], variant.options); };
    c.oracle = [=](const Inputs& in) {
      const Tensor &q = in["q"], &k = in["k"];
      std::vector<double> scores;
      ScorePlace at{0, 0, 0, 0, q.size(2), k.size(2)};
      for (at.head = 0; at.head < q.size(1); ++at.head) {
        for (at.query = 0; at.query < at.queries; ++at.query) {
          for (at.key = 0; at.key < at.keys; ++at.key) scores.push_back(score_by_loops(in, variant, at));
        }
      }
      return from_values(scores, {1, q.size(1), at.queries, at.keys}, f64);
    };
  });
}

void add_weights(Cases& cases) {
  cases.add("attention_softmax", [](Case& c) {
    c.input("scores", {1, 2, 3, 5});
    c.input("sinks", {2});
    c.value = [](const Inputs& in) { return attention_softmax(in["scores"], in["sinks"]); };
    c.oracle = [](const Inputs& in) {
      const Tensor e = exp(in["scores"]), sink = exp(in["sinks"]);
      return e / (sum(e, -1, keepdims) + reshape(sink, {sink.numel(), 1, 1}));
    };
    c.refuses<ShapeError>("more sinks than heads", "[attention_softmax]",
                          [](const Inputs& in) { return attention_softmax(in["scores"], zeros({3}, f64)); });
  });
  cases.add("attention_weights", [](Case& c) {
    c.input("q", {1, 4, 3, 2});
    c.input("k", {1, 2, 5, 2});
    c.input("sinks", {4});
    c.fixed_sizes = {4, 2, 3, 5};
    const AttentionVariant variant{
        .options = {.mask = Mask::causal()}, .visible = keys_up_to_query, .sinks = true};
    c.value = [=](const Inputs& in) { return attention_weights(in["q"], in["k"], variant.with(in), {3, 0}); };
    c.oracle = [=](const Inputs& in) {
      std::vector<NamedTensor> inputs(in.begin(), in.end());
      inputs.push_back({"v", in["k"]});
      const Tensor weights = attention_by_loops(Inputs(inputs), variant).weights;
      return concat({slice(weights, 1, 3, 4), slice(weights, 1, 0, 1)}, 1);
    };
    c.refuses<IndexError>("a head out of range", "[attention_weights] head 4",
                          [](const Inputs& in) { return attention_weights(in["q"], in["k"], {}, {4}); });
  });
}

void add_output(Cases& cases) {
  cases.add("attention_output", [](Case& c) {
    c.input("weights", {1, 4, 3, 5});
    c.input("v", {1, 2, 5, 2});
    c.fixed_sizes = {4, 2};
    c.value = [](const Inputs& in) { return attention_output(in["weights"], in["v"]); };
    c.oracle = [](const Inputs& in) {
      const auto group = [&](std::int64_t g) {
        return matmul(slice(in["weights"], 1, 2 * g, 2 * g + 2), slice(in["v"], 1, g, g + 1));
      };
      return concat({group(0), group(1)}, 1);
    };
    c.refuses<ShapeError>("another number of values than weights", "[attention_output]",
                          [](const Inputs& in) {
                            return attention_output(in["weights"], zeros({1, 2, 4, 2}, f64));
                          });
  });
}

void add_alibi_bias(Cases& cases) {
  cases.add("alibi_bias", [](Case& c) {
    c.input("slopes", {3});
    c.value = [](const Inputs& in) { return alibi_bias(in["slopes"], 2, 4); };
    c.oracle = [](const Inputs& in) {
      // From key 0 as seen by query 1, which is aligned with key 3, to key 3 as seen by query 0.
      const Tensor distances = tensor({3, 2, 1, 0, 1}, f64);
      return map_elements(reshape(in["slopes"], {in["slopes"].numel(), 1}), distances,
                          [](double slope, double distance) { return -slope * distance; });
    };
    c.refuses<ShapeError>("slopes with two axes", "[alibi_bias]", [](const Inputs&) {
      return alibi_bias(zeros({2, 1}), 2, 4);
    });
  });
}

}  // namespace

void add_attention_parts_cases(Cases& cases) {
  add_scores(cases);
  add_weights(cases);
  add_output(cases);
  add_alibi_bias(cases);
}

}  // namespace fovea
