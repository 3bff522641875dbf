#include <cmath>

#include "tests/gradcheck/planted_rows.h"

namespace fovea {
namespace {

void add_factors(Rows& rows) {
  rows.wrong("scaled by 1.001", square([](auto x, auto dy) { return 2.002 * x * dy; }), one({3, 5}),
             "constant factor: analytic = 1.001 x");
  rows.wrong("scaled by 1.00001", square([](auto x, auto dy) { return 2.00002 * x * dy; }), one({3, 5}),
             "constant factor: analytic = 1.00001 x");
  rows.wrong("wrong sign", square([](auto x, auto dy) { return -2 * x * dy; }), one({3, 5}),
             "the sign is wrong");
  rows.wrong(
      "sign of a denominator",
      [](const Inputs& in) {
        return with_rule(in["x"] / in["y"], {in["x"], in["y"]},
                         [](const Saved& s, const Tensor& dy) -> Gradients {
                           return {dy / s[1], dy * s[0] / (s[1] * s[1])};
                         });
      },
      [](Rng& rng) {
        return Inputs{{"x", randn({3, 5}, rng, f64)}, {"y", 1 + exp(randn({3, 5}, rng, f64))}};
      },
      "the sign is wrong");
  rows.wrong("gradient of zero", square([](auto x, auto dy) { return 0 * x * dy; }), one({3, 5}),
             "analytic is zero");
  rows.wrong(
      "double-counted reuse",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(x, {x, x}, [](const Saved&, const Tensor& dy) -> Gradients { return {dy, dy}; });
      },
      one({3, 5}), "analytic = 2 x");
}

void add_missing_divisors(Rows& rows) {
  rows.wrong(
      "mean without the division by n",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(mean(x, -1), {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {broadcast_to(reshape(dy, {3, 1}), s[0].shape())};
        });
      },
      one({3, 5}), "analytic = 5 x");
  rows.wrong(
      "attention's scale forgotten in dq",
      [](const Inputs& in) {
        const Tensor &q = in["q"], &k = in["k"];
        const double scale = 1 / std::sqrt(7.0);
        return with_rule(matmul(q, transpose(k)) * scale, {q, k},
                         [=](const Saved& s, const Tensor& dy) -> Gradients {
                           return {matmul(dy, s[1]), matmul(transpose(dy), s[0]) * scale};
                         });
      },
      normal({{"q", {3, 7}}, {"k", {5, 7}}}), "analytic = 2.64575 x");
  rows.wrong(
      "cross entropy divided by all targets, not by the kept ones",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        const Indices targets{2, -100, 0};
        return with_rule(cross_entropy(x, targets, {.ignore_index = -100}).loss, {x},
                         [=](const Saved& s, const Tensor& dy) -> Gradients {
                           const Tensor kept = from_values(std::vector<double>{1, 0, 1}, {3, 1}, dy.dtype());
                           const Tensor right = to(
                               tensor({{0, 0, 1, 0, 0}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}}, f64), dy.dtype());
                           return {(softmax(s[0]) - right) * kept * dy / 3};
                         });
      },
      one({3, 5}), "analytic = 0.666667 x");
}

void add_transposes(Rows& rows) {
  rows.wrong(
      "transposed",
      [](const Inputs& in) {
        const Tensor &x = in["x"], &W = in["W"];
        return with_rule(matmul(x, W), {x, W}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {matmul(dy, transpose(s[1])), transpose(matmul(transpose(s[0]), dy))};
        });
      },
      normal({{"x", {3, 5}}, {"W", {5, 5}}}), "transposed");
  rows.wrong(
      "a factor not transposed",
      [](const Inputs& in) {
        const Tensor &x = in["x"], &W = in["W"];
        return with_rule(matmul(x, W), {x, W}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {matmul(dy, s[1]), matmul(transpose(s[0]), dy)};
        });
      },
      normal({{"x", {3, 5}}, {"W", {5, 5}}}));
}

void add_wrong_sums(Rows& rows) {
  rows.wrong(
      "forgotten broadcast sum",
      [](const Inputs& in) {
        return with_rule(in["x"] + in["bias"], {in["x"], in["bias"]},
                         [](const Saved&, const Tensor& dy) -> Gradients {
                           return {dy, select(dy, 0, 0)};
                         });
      },
      normal({{"x", {3, 5}}, {"bias", {5}}}), "missing the sum over a broadcast axis");
  rows.wrong(
      "forgotten broadcast sum, of a gain",
      [](const Inputs& in) {
        return with_rule(in["x"] * in["gain"], {in["x"], in["gain"]},
                         [](const Saved& s, const Tensor& dy) -> Gradients {
                           return {dy * s[1], select(dy * s[0], 0, 2)};
                         });
      },
      normal({{"x", {3, 5}}, {"gain", {5}}}), "missing the sum over a broadcast axis");
  rows.wrong(
      "the last step left out of a sum over time",
      [](const Inputs& in) {
        return with_rule(in["x"] + in["bias"], {in["x"], in["bias"]},
                         [](const Saved&, const Tensor& dy) -> Gradients {
                           return {dy, sum(slice(dy, 0, 0, 6), 0)};
                         });
      },
      normal({{"x", {7, 5}}, {"bias", {5}}}), "index 6 of the output's axis 0 is left out");
  rows.wrong(
      "sum over the wrong axis",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(softmax(x), {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          const Tensor y = softmax(s[0]);
          return {y * (dy - sum(y * dy, 0, keepdims))};
        });
      },
      one({5, 5}));
}

void add_wrong_places(Rows& rows) {
  rows.wrong(
      "off by one in a slice's backward",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(slice(x, 1, 2, 5) * 3, {x}, [](const Saved&, const Tensor& dy) -> Gradients {
          return {concat({zeros({3, 1}, dy.dtype()), 3 * dy, zeros({3, 3}, dy.dtype())}, 1)};
        });
      },
      one({3, 7}), "shifted by -1 along axis 1");
  rows.wrong(
      "a reversal whose backward does not reverse",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        std::vector<Tensor> columns;
        for (std::int64_t i = 5; i-- > 0;) columns.push_back(select(x, 1, i));
        return with_rule(stack(columns, 1), {x},
                         [](const Saved&, const Tensor& dy) -> Gradients { return {dy}; });
      },
      one({3, 5}), "reversed along axis 1");
  rows.wrong(
      "permuted by the permutation, not its inverse",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(permute(x, {1, 2, 0}), {x}, [](const Saved&, const Tensor& dy) -> Gradients {
          return {permute(dy, {1, 2, 0})};
        });
      },
      one({3, 3, 3}), "transposed");
  rows.wrong(
      "pieces of a concatenation swapped",
      [](const Inputs& in) {
        return with_rule(concat({in["a"], in["b"]}, 0), {in["a"], in["b"]},
                         [](const Saved&, const Tensor& dy) -> Gradients {
                           return {slice(dy, 0, 3, 6), slice(dy, 0, 0, 3)};
                         });
      },
      normal({{"a", {3, 5}}, {"b", {3, 5}}}));
}

void add_wrong_rows(Rows& rows) {
  rows.wrong("the last row of a batch left out", square([](auto x, auto dy) {
               return concat({slice(2 * x * dy, 0, 0, 2), zeros({1, 5}, x.dtype())}, 0);
             }),
             one({3, 5}), "only index 2 of axis 0 is wrong");
  rows.wrong("wrong only at one element", square([](const Tensor& x, const Tensor& dy) {
               std::vector<double> factor(15, 2);
               factor[2 * 5 + 3] = 2.01;
               return to(from_values(factor, {3, 5}, f64), x.dtype()) * x * dy;
             }),
             one({3, 5}), "only this one element");
  rows.wrong(
      "rows gathered twice get the last gradient only",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(embedding(x, Indices{2, 0, 2}), {x},
                         [](const Saved&, const Tensor& dy) -> Gradients {
                           const Tensor nothing = zeros({1, 5}, dy.dtype());
                           return {concat({slice(dy, 0, 1, 2), nothing, slice(dy, 0, 2, 3)}, 0)};
                         });
      },
      one({3, 5}), "missing the sum over a broadcast axis");
  rows.wrong(
      "wrong only for non-contiguous input",
      [](const Inputs& in) {
        const Tensor x = transpose(in["x"]);
        return with_rule(x * x, {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {(s[0].is_contiguous() ? 2 : 2.01) * s[0] * dy};
        });
      },
      one({3, 5}), "analytic = 1.005 x");
}

}  // namespace

void add_wrong_factors_and_places(Rows& rows) {
  add_factors(rows);
  add_missing_divisors(rows);
  add_transposes(rows);
  add_wrong_sums(rows);
  add_wrong_places(rows);
  add_wrong_rows(rows);
}

std::vector<GradcheckRow> planted_bugs() {
  Rows rows;
  add_wrong_factors_and_places(rows);
  add_lost_terms_and_values(rows);
  return rows.take();
}

}  // namespace fovea
