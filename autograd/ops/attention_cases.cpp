#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "autograd/cases.h"

namespace fovea {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Place {
  std::int64_t batch, head, query, key, queries, keys;
  std::int64_t ahead() const { return key - query - (keys - queries); }
};
using Sees = std::function<bool(const Place&)>;

// Attention as loops: for every query, the weights of the keys it sees, and their sum of values.
Attention attend(const Tensor& q, const Tensor& k, const Tensor& v, const Sees& sees, double scale) {
  const std::int64_t keys = k.size(2);
  std::vector<double> outputs, weights;
  Place place{0, 0, 0, 0, q.size(2), keys};
  for (place.batch = 0; place.batch < q.size(0); ++place.batch) {
    for (place.head = 0; place.head < q.size(1); ++place.head) {
      for (place.query = 0; place.query < q.size(2); ++place.query) {
        std::vector<double> row;
        double total = 0;
        for (place.key = 0; place.key < keys; ++place.key) {
          double score = 0;
          for (std::int64_t d = 0; d < q.size(3); ++d) {
            score += q.at({place.batch, place.head, place.query, d}) *
                     k.at({place.batch, place.head, place.key, d});
          }
          row.push_back(sees(place) ? std::exp(score * scale) : 0);
          total += row.back();
        }
        for (double& weight : row) weight = total > 0 ? weight / total : 0;
        weights.insert(weights.end(), row.begin(), row.end());
        for (std::int64_t d = 0; d < v.size(3); ++d) {
          double output = 0;
          for (std::int64_t j = 0; j < keys; ++j) {
            const double weight = row[static_cast<std::size_t>(j)];
            if (weight != 0) output += weight * v.at({place.batch, place.head, j, d});
          }
          outputs.push_back(output);
        }
      }
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

double usual_scale(const Tensor& q) { return 1 / std::sqrt(static_cast<double>(q.size(3))); }

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
  refuses("other heads", {1, 2, 3, 5}, {1, 1, 7, 5}, {1, 1, 7, 5});
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
Special hidden_numbers(const std::string& name, const Mask& mask) {
  return {.name = name,
          .inputs = {{"q", tensor({{1, 2}, {3, 4}}, f64)},
                     {"k", tensor({{0, 0}, {0, 0}, {nan, infinity}}, f64)},
                     {"v", tensor({{4, 1}, {8, 3}, {nan, -infinity}}, f64)}},
          .value = {6, 2, 6, 2},
          .cotangent = {1, 2, 3, 5},
          .gradients = {{"q", {0, 0, 0, 0}}, {"v", {2, 3.5, 2, 3.5, 0, 0}}},
          .of = attention_of_one_head(mask)};
}

Special nothing_to_see() {
  return {.name = "nothing to see at all",
          .inputs = {{"q", tensor({{1, 2}, {3, 4}}, f64)},
                     {"k", tensor({{5, 6}, {7, 8}}, f64)},
                     {"v", tensor({{9, 1}, {2, nan}}, f64)}},
          .value = {0, 0, 0, 0},
          .cotangent = {3, 5, 7, 11},
          .gradients = {{"q", {0, 0, 0, 0}}, {"k", {0, 0, 0, 0}}, {"v", {0, 0, 0, 0}}},
          .of = attention_of_one_head(Mask::keep(Bool{false}))};
}

void add_masks(Cases& cases) {
  const auto row = [&](const std::string& name, const Shape& q, const Shape& k, const Mask& mask,
                       const Sees& sees, const std::vector<std::int64_t>& fixed_sizes = {}) {
    cases.add(name, [&](Case& c) {
      c.input("q", q);
      c.input("k", k);
      c.input("v", {k[0], k[1], k[2], 1});
      c.fixed_sizes = fixed_sizes;
      c.not_empty = {2};  // scores of heads of size 0 have no scale
      c.value = [=](const Inputs& in) {
        return joined(attention_with_weights(in["q"], in["k"], in["v"], {.mask = mask}));
      };
      c.oracle = [=](const Inputs& in) {
        return joined(attend(in["q"], in["k"], in["v"], sees, usual_scale(in["q"])));
      };
      refuse_wrong_shapes(c);
    });
  };
  const Shape q{1, 2, 3, 2}, k{1, 2, 5, 2};
  const auto causal = [](const Place& at) { return at.ahead() <= 0; };
  const auto near = [](const Place& at) { return std::abs(at.ahead()) < 2; };
  row("attention_with_weights", q, k, {}, [](const Place&) { return true; });
  row("attention_with_weights, causal", q, k, Mask::causal(), causal);
  row("attention_with_weights, window", q, k, Mask::window(2), near);
  row("attention_with_weights, causal window", q, k, Mask::causal() & Mask::window(2),
      [=](const Place& at) { return causal(at) && near(at); });
  row("attention_with_weights, keep", q, k, Mask::keep(pattern()), in_pattern, {2, 3, 5});
  row("attention_with_weights, drop", q, k, Mask::drop(!pattern()), in_pattern, {2, 3, 5});
  row("attention_with_weights, lengths", {2, 1, 3, 2}, {2, 1, 5, 2}, Mask::lengths({3, 0}),
      [](const Place& at) { return at.key < (at.batch == 0 ? 3 : 0); }, {2});
  row("attention_with_weights, causal with lengths", {2, 1, 3, 2}, {2, 1, 5, 2},
      Mask::causal() & Mask::lengths({3, 4}),
      [=](const Place& at) { return causal(at) && at.key < (at.batch == 0 ? 3 : 4); }, {2});
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
      const Attention heads = attend(q, project("Wk"), project("Wv"), sees, usual_scale(q));
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
      c.oracle = [=](const Inputs& in) {
        const double scale = options.scale.value_or(usual_scale(in["q"]));
        return attend(
                   in["q"], in["k"], in["v"], [](const Place&) { return true; }, scale)
            .output;
      };
      refuse_wrong_shapes(c);
      c.special(hidden_numbers("padding holds NaN", Mask::lengths({2})));
      c.special(hidden_numbers("a key hidden from all holds NaN", Mask::drop(Bool{false, false, true})));
      c.special(nothing_to_see());
      c.refuses<ShapeError>("a mask that does not fit", "[mask]", [](const Inputs& in) {
        return attention(in["q"], in["k"], in["v"], {.mask = Mask::keep(Bool{true, false})});
      });
      c.refuses<ShapeError>("lengths for another batch", "[mask]", [](const Inputs& in) {
        return attention(in["q"], in["k"], in["v"], {.mask = Mask::lengths({1, 2})});
      });
    });
  };
  plain("attention", {});
  plain("attention, with a scale", {.scale = 0.7});
  add_masks(cases);
  const auto causal = [](const Place& at) { return at.ahead() <= 0; };
  add_self_attention(cases, "self_attention", {2, 3, 5}, Mask::causal(), causal);
  add_self_attention(cases, "self_attention, without a batch", {3, 5}, Mask::causal(), causal);
  add_self_attention(cases, "self_attention, seeing everything", {2, 3, 5}, {},
                     [](const Place&) { return true; });
}

}  // namespace fovea
