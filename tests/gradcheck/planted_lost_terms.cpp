#include <cmath>
#include <limits>
#include <memory>

#include "tests/gradcheck/planted_rows.h"

namespace fovea {
namespace {

void add_missing_terms(Rows& rows) {
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
      one({3, 5}), "a term is missing that is constant along axis 1");
  rows.wrong(
      "forgotten term of a penalty",
      [](const Inputs& in) {
        const Tensor& x = in["x"];
        return with_rule(sum(exp(x) + x * x), {x},
                         [](const Saved& s, const Tensor& dy) -> Gradients { return {exp(s[0]) * dy}; });
      },
      one({3, 5}), "a term is missing");
}

void add_missing_terms_of_products(Rows& rows) {
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
}

void add_lost_paths(Rows& rows) {
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
      "stale saved value, as two calls share a buffer",
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

void add_non_finite(Rows& rows) {
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
}

void add_invalid_checks(Rows& rows) {
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
      "vacuous", "an input without elements", [](const Inputs& in) { return in["x"] * 2; }, one({3, 0}));
  rows.otherwise(
      "aliased", "an expanded input", [](const Inputs& in) { return in["x"] * in["x"]; },
      [](Rng& rng) {
        return Inputs{{"x", broadcast_to(randn({3, 1}, rng, f64), {3, 5})}};
      });
}

}  // namespace

void add_lost_terms_and_values(Rows& rows) {
  add_missing_terms(rows);
  add_missing_terms_of_products(rows);
  add_lost_paths(rows);
  add_saved(rows);
  add_second_order(rows);
  add_f32(rows);
  add_non_finite(rows);
  add_invalid_checks(rows);
}

}  // namespace fovea
