#include <cmath>
#include <limits>
#include <memory>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/gradcheck/rows.h"

namespace fovea {
namespace {

using MakeInputs = std::function<Inputs(Rng&)>;

MakeInputs normal(std::vector<std::pair<std::string, Shape>> shapes) {
  return [shapes](Rng& rng) {
    std::vector<NamedTensor> inputs;
    for (const auto& [name, shape] : shapes) inputs.push_back({name, randn(shape, rng, f64)});
    return Inputs(inputs);
  };
}

MakeInputs one(const Shape& shape) { return normal({{"x", shape}}); }

// A value that knows nothing of its inputs but what the rule says: (saved inputs, dy) -> gradients.
template <class Rule>
Tensor with_rule(const Tensor& value, TensorList inputs, Rule rule) {
  return record("planted", value.detach(), inputs, inputs,
                [rule](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return rule(saved, dy);
                });
}

// x^2 with a rule of its own: (x, dy) -> gradient.
template <class Rule>
NamedFunction square(Rule rule) {
  return [rule](const Inputs& in) {
    const Tensor& x = in["x"];
    return with_rule(x * x, {x}, [rule](const Saved& saved, const Tensor& dy) -> Gradients {
      return {rule(saved[0], dy)};
    });
  };
}

template <class Rule>
NamedFunction unary(Tensor (*value)(const Tensor&), Rule rule) {
  return [=](const Inputs& in) {
    const Tensor& x = in["x"];
    return with_rule(value(x), {x}, [rule](const Saved& saved, const Tensor& dy) -> Gradients {
      return {rule(saved[0], dy)};
    });
  };
}

Tensor softmax_of_rows(const Tensor& x) { return softmax(x); }

class Rows {
 public:
  void wrong(const std::string& name, NamedFunction f, MakeInputs inputs, const std::string& hint = "") {
    add({name, std::move(f), std::move(inputs), {}, "wrong", hint});
  }
  void wrong_at_order_2(const std::string& name, NamedFunction f, MakeInputs inputs) {
    add({name, std::move(f), std::move(inputs), {.order = 2}, "wrong"});
  }
  void otherwise(const std::string& verdict, const std::string& name, NamedFunction f, MakeInputs inputs) {
    add({name, std::move(f), std::move(inputs), {}, verdict});
  }
  std::vector<GradcheckRow> take() { return std::move(rows_); }

 private:
  void add(GradcheckRow row) { rows_.push_back(std::move(row)); }
  std::vector<GradcheckRow> rows_;
};

void add_factors(Rows& rows) {
  rows.wrong("scaled by 1.001", square([](auto x, auto dy) { return 2.002 * x * dy; }), one({3, 5}),
             "constant factor: analytic = 1.001 x");
  rows.wrong("scaled by 1.00001", square([](auto x, auto dy) { return 2.00002 * x * dy; }), one({3, 5}),
             "constant factor: analytic = 1.00001 x");
  rows.wrong("sign", square([](auto x, auto dy) { return -2 * x * dy; }), one({3, 5}), "the sign is wrong");
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
  rows.wrong("zero", square([](auto x, auto dy) { return 0 * x * dy; }), one({3, 5}), "analytic is zero");
  rows.wrong(
      "double-counted reuse",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(x, {x, x}, [](const Saved&, const Tensor& dy) -> Gradients { return {dy, dy}; });
      },
      one({3, 5}), "analytic = 2 x");
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

void add_places(Rows& rows) {
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

void add_terms(Rows& rows) {
  rows.wrong("forgotten term of softmax",
             unary(softmax_of_rows, [](auto x, auto dy) { return softmax(x) * dy; }), one({3, 5}));
  rows.wrong(
      "forgotten term of layer_norm",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(layer_norm(x), {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          const Tensor centred = s[0] - mean(s[0], -1, keepdims);
          const Tensor inverse = rsqrt(mean(centred * centred, -1, keepdims) + 1e-5);
          const Tensor y = centred * inverse;
          return {inverse * (dy - y * mean(dy * y, -1, keepdims))};
        });
      },
      one({3, 5}), "constant along axis 1");
  rows.wrong(
      "forgotten term of a penalty",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(sum(exp(x) + x * x), {x},
                         [](const Saved& s, const Tensor& dy) -> Gradients { return {exp(s[0]) * dy}; });
      },
      one({3, 5}), "x the input is missing");
  rows.wrong(
      "forgotten term of a product",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(x * exp(x), {x},
                         [](const Saved& s, const Tensor& dy) -> Gradients { return {exp(s[0]) * dy}; });
      },
      one({3, 5}));
  rows.wrong(
      "forgotten one-hot of cross entropy",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(
            cross_entropy(x, Indices{2, 1, 0}).loss, {x},
            [](const Saved& s, const Tensor& dy) -> Gradients { return {softmax(s[0]) * dy / 3}; });
      },
      one({3, 5}));
  rows.wrong(
      "detached branch", [](const Inputs& in) { return in["x"] * sigmoid(in["x"]).detach(); }, one({3, 5}));
  rows.wrong(
      "detached input", [](const Inputs& in) { return in["x"] * in["y"].detach() + 0 * in["y"]; },
      normal({{"x", {3, 5}}, {"y", {3, 5}}}), "analytic is zero");
  rows.wrong(
      "the causal mask forgotten in the backward",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        const Bool seen = Mask::causal().materialize(1, 1, 5, 5).reshape({5, 5});
        const double hidden = -std::numeric_limits<double>::infinity();
        return with_rule(softmax(where(seen, x, hidden)), {x},
                         [](const Saved& s, const Tensor& dy) -> Gradients {
                           const Tensor y = softmax(s[0]);
                           return {y * (dy - sum(y * dy, -1, keepdims))};
                         });
      },
      one({5, 5}));
  rows.wrong(
      "the gradient of a maximum sent to all",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(max(x, -1), {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {broadcast_to(reshape(dy, {3, 1}) / 5, s[0].shape())};
        });
      },
      one({3, 5}));
  rows.wrong(
      "clamp's gradient passed outside its bounds",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(clamp(x, -0.5, 0.5), {x},
                         [](const Saved&, const Tensor& dy) -> Gradients { return {dy}; });
      },
      one({3, 5}));
}

void add_saved(Rows& rows) {
  rows.wrong("saved the input in place of the output", unary(exp, [](auto x, auto dy) { return x * dy; }),
             one({3, 5}));
  rows.wrong("saved the output in place of the input",
             unary(exp, [](auto x, auto dy) { return exp(exp(x)) * dy; }), one({3, 5}));
  rows.wrong("tanh's derivative taken from its input",
             unary(tanh, [](auto x, auto dy) { return (1 - x * x) * dy; }), one({3, 5}));
  rows.wrong(
      "stale saved value: two calls share a buffer",
      [](const Inputs& in) {
        const auto buffer = std::make_shared<Tensor>();
        const auto shared_square = [&](const Tensor& x) {
          *buffer = x.detach();
          return record("square", (x * x).detach(), {x}, {},
                        [buffer](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                          return {2 * *buffer * dy};
                        });
        };
        const Tensor first = shared_square(in["x"]);
        return first + shared_square(exp(in["x"]));
      },
      one({3, 5}));
}

void add_second_order(Rows& rows) {
  rows.wrong_at_order_2("right at first order: the rule's input is detached",
                        square([](auto x, auto dy) { return 2 * x.detach() * dy; }), one({3, 5}));
  rows.wrong_at_order_2("right at first order: the rule's cotangent is detached",
                        square([](auto x, auto dy) { return 2 * x * dy.detach(); }), one({3, 5}));
  rows.wrong_at_order_2("right at first order: wrong by 1.001 where it is recorded",
                        square([](auto x, auto dy) {
                          return recording() ? 2.002 * x * dy - 0.002 * (x * dy).detach() : 2 * x * dy;
                        }),
                        one({3, 5}));
  rows.wrong_at_order_2(
      "right at first order: a saved output without its node",
      [](const Inputs& in) {
        const Tensor y = exp(in["x"]).detach(), lost = y.detach();
        return record("exp", y, {in["x"]}, {lost},
                      [](const Saved& s, const Tensor& dy, const NeedsGradient&) -> Gradients {
                        return {s[0].detach() * dy};
                      });
      },
      one({3, 5}));
}

void add_f32(Rows& rows) {
  rows.otherwise("f32-drift", "right in f64, its f32 gradient off by 1e-4",
                 square([](auto x, auto dy) { return (x.dtype() == f32 ? 2.0002 : 2) * x * dy; }),
                 one({3, 5}));
  rows.otherwise(
      "f32-drift", "right in f64, its f32 value off by 1e-4",
      [](const Inputs& in) { return tanh(in["x"]) * (in["x"].dtype() == f32 ? 1.0001 : 1); }, one({3, 5}));
  rows.otherwise(
      "f32-drift", "variance as mean of squares less square of mean",
      [](const Inputs& in) {
        const Tensor &x = in["x"], m = mean(x, -1);
        return mean(x * x, -1) - m * m;
      },
      [](Rng& rng) {
        return Inputs{{"x", 3000 + randn({3, 5}, rng, f64)}};
      });
  rows.otherwise("f32-drift", "one element wrong in f32", square([](const Tensor& x, const Tensor& dy) {
                   std::vector<double> factor(15, 2);
                   factor[7] = x.dtype() == f32 ? 0 : 2;
                   return to(from_values(factor, {3, 5}, f64), x.dtype()) * x * dy;
                 }),
                 one({3, 5}));
}

void add_verdicts_on_the_whole(Rows& rows) {
  rows.otherwise("non-finite", "NaN in the gradient", square([](auto x, auto dy) {
                   return 2 * x * dy * std::numeric_limits<double>::quiet_NaN();
                 }),
                 one({3, 5}));
  rows.otherwise(
      "non-finite", "infinite gradient where the derivative is 0",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(x * x * x, {x}, [](const Saved& s, const Tensor& dy) -> Gradients {
          return {where(s[0] == 0.0, 1.0 / (0.0 * s[0]), 3 * s[0] * s[0]) * dy};
        });
      },
      [](Rng&) {
        return Inputs{{"x", tensor({0, 1, 2}, f64)}};
      });
  rows.otherwise(
      "non-finite", "a value that is not finite", [](const Inputs& in) { return in["x"] / (0 * in["x"]); },
      one({3, 5}));
  rows.otherwise(
      "not deterministic", "random numbers drawn in the rule",
      [rng = std::make_shared<Rng>(5)](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(x, {x},
                         [=](const Saved&, const Tensor& dy) -> Gradients { return {dy * rng->uniform()}; });
      },
      one({3, 5}));
  rows.otherwise(
      "not deterministic", "random numbers drawn in the forward",
      [rng = std::make_shared<Rng>(5)](const Inputs& in) { return in["x"] * (1 + rng->uniform()); },
      one({3, 5}));
  rows.otherwise(
      "vacuous", "a sum of a softmax", [](const Inputs& in) { return sum(softmax(in["x"])); }, one({5}));
  rows.otherwise(
      "vacuous", "an input that is not used", [](const Inputs& in) { return in["x"] * 2; },
      normal({{"x", {3}}, {"y", {3}}}));
  rows.otherwise(
      "vacuous", "nothing to check", [](const Inputs& in) { return in["x"] * 2; }, one({3, 0}));
  rows.otherwise(
      "aliased", "an expanded input", [](const Inputs& in) { return in["x"] * in["x"]; },
      [](Rng& rng) {
        return Inputs{{"x", broadcast_to(randn({3, 1}, rng, f64), {3, 5})}};
      });
}

}  // namespace

std::vector<GradcheckRow> planted_bugs() {
  Rows rows;
  add_factors(rows);
  add_places(rows);
  add_terms(rows);
  add_saved(rows);
  add_second_order(rows);
  add_f32(rows);
  add_verdicts_on_the_whole(rows);
  return rows.take();
}

}  // namespace fovea
