#include "fovea/autograd/graph/graph.h"

#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// What an op's author uses: record, saved tensors, rules, and the graph that comes of them.

using namespace fovea;

namespace {

Tensor leaf(Tensor x) { return x.set_requires_grad(); }

void write(Tensor x, double value) {
  dispatch(x.dtype(), [&]<class T>() { x.mutable_data<T>()[0] = static_cast<T>(value); });
}

}  // namespace

TEST_CASE("an op is recorded only where a gradient is needed") {
  const Tensor plain = tensor({1, 2, 3});
  const Tensor x = leaf(tensor({1, 2, 3}));
  CHECK_FALSE((plain * plain).requires_grad());
  CHECK((plain * plain).is_leaf());
  CHECK((x * plain).requires_grad());
  CHECK_FALSE((x * plain).is_leaf());
  CHECK(x.is_leaf());
  {
    NoGrad off;
    CHECK_FALSE(recording());
    CHECK_FALSE((x * plain).requires_grad());
    { NoGrad nested; }
    CHECK_FALSE(recording());
  }
  CHECK(recording());
}

TEST_CASE("detach leaves the graph and shares the array") {
  Tensor x = leaf(tensor({1, 2, 3}));
  const Tensor y = x * x;
  const Tensor outside = y.detach();
  CHECK_FALSE(outside.requires_grad());
  CHECK(outside.data<float>() == y.data<float>());
  backward(sum(x * y.detach()));
  CHECK(x.grad().to_vector() == std::vector<double>{1, 4, 9});
  // A detached tensor may be written to, which its siblings notice.
  Tensor shared = x.detach();
  write(shared, 7);
  CHECK(x.at({0}) == 7);
  CHECK(x.version() == 1);
}

TEST_CASE("a saved tensor that was changed is an error with name, shape and versions") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = leaf(ones({32, 64}, dtype));
  const Tensor y = sum(x * x);
  write(x, 2);
  CHECK_THROWS_AS(backward(y, {.retain_graph = true}), GraphError);
  CHECK_THROWS_WITH(backward(y),
                    "[mul] the tensor saved for its gradient, shape (32, 64), was changed after it was used "
                    "(version 0 then, 1 now)");
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a change is noticed through any view of the array, and through the op's own output") {
  Tensor x = leaf(ones({3, 5}));
  Tensor base = ones({5, 3});
  const Tensor y = sum(x * transpose(base));
  write(slice(base, 0, 1, 2), 4);
  CHECK_THROWS_WITH(backward(y), ContainsSubstring("[mul]") && ContainsSubstring("was changed"));

  const Tensor e = exp(x);
  const Tensor total = sum(e);
  write(e.detach(), 4);
  CHECK_THROWS_WITH(backward(total), ContainsSubstring("[exp]") && ContainsSubstring("was changed"));
}

TEST_CASE("a change before an op, or of something no rule needs, is no error") {
  Tensor x = leaf(ones({3}));
  Tensor b = ones({3});
  write(b, 2);
  const Tensor y = sum(x * b + b);
  CHECK_NOTHROW(backward(y));
  CHECK(x.grad().to_vector() == std::vector<double>{2, 1, 1});
  const Tensor z = sum(x + b);  // a sum saves nothing
  write(b, 5);
  CHECK_NOTHROW(backward(z));
}

TEST_CASE("writing to a recorded tensor is an error, and to a leaf it is not") {
  Tensor x = leaf(ones({3}));
  Tensor y = x * 2;
  CHECK_THROWS_WITH(y.mutable_data<float>(), ContainsSubstring("[mutable_data]") &&
                                                 ContainsSubstring("'affine'") && ContainsSubstring("(3,)"));
  CHECK_NOTHROW(x.mutable_data<float>());
  CHECK(x.version() == 1);
}

TEST_CASE("an input that was not given is undefined, needs no gradient and is undefined among the saved") {
  // x + bias, as a rule with an optional input is written.
  const auto shift = [](const Tensor& x, const Tensor& bias) {
    const Tensor y = bias.defined() ? (x + bias).detach() : x.detach();
    return record("shift", y, {x, bias}, {x, bias},
                  [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                    CHECK(saved[0].defined());
                    CHECK(saved[1].defined() == needs[1]);
                    return {dy, needs[1] ? Gradient(dy) : Gradient()};
                  });
  };
  const Anomaly checked;
  Tensor x = leaf(tensor({3, 5}));
  backward(shift(x, {}), {.gradient = tensor({2, 7})});
  CHECK(x.grad().to_vector() == std::vector<double>{2, 7});
  Tensor bias = leaf(tensor({11, 13}));
  backward(shift(x, bias), {.gradient = tensor({2, 7})});
  CHECK(bias.grad().to_vector() == std::vector<double>{2, 7});
  CHECK_FALSE(shift(x.detach(), {}).requires_grad());
}

TEST_CASE("an op of several outputs gets the cotangents of those that were used") {
  Tensor x = leaf(tensor({3, 5}, f64));
  std::size_t defined = 0;
  const auto halves = [&](const Tensor& v) {
    return record("sum_and_difference",
                  std::vector<Tensor>{sum(v).detach(), (select(v, 0, 0) - select(v, 0, 1)).detach()}, {v}, {},
                  [&](const Saved&, std::span<const Tensor> dy, const NeedsGradient&) -> Gradients {
                    defined = (dy[0].defined() ? 1u : 0u) + (dy[1].defined() ? 2u : 0u);
                    const Tensor one = zeros({}, f64);
                    const Tensor total = dy[0].defined() ? dy[0] : one;
                    const Tensor difference = dy[1].defined() ? dy[1] : one;
                    return {stack({total + difference, total - difference}, 0)};
                  });
  };
  std::vector<Tensor> outputs = halves(x);
  CHECK(outputs[0].item() == 8);
  CHECK(outputs[1].item() == -2);
  backward(outputs[0] * 10 + outputs[1] * 1);
  CHECK(defined == 3);
  CHECK(x.grad().to_vector() == std::vector<double>{11, 9});

  x.set_grad({});
  backward(halves(x)[1]);
  CHECK(defined == 2);
  CHECK(x.grad().to_vector() == std::vector<double>{1, -1});

  outputs = halves(x);
  const std::vector<Tensor> gradients = grad(outputs, {x}, {.gradients = {scalar(2, f64), scalar(3, f64)}});
  CHECK(gradients[0].to_vector() == std::vector<double>{5, -1});
}

TEST_CASE("a rule is told which inputs need a gradient and what shape they have") {
  const Tensor x = leaf(ones({3, 5}));
  const Tensor constant = ones({5});
  const auto op = [&](const Tensor& a, const Tensor& b) {
    return record("probe", (a * b).detach(), {a, b}, {},
                  [](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                    CHECK(needs[0]);
                    CHECK_FALSE(needs[1]);
                    CHECK(needs.shape(0) == Shape{3, 5});
                    return {dy, {}};
                  });
  };
  backward(sum(op(x, constant)));
  // An input on no path to what is asked for does not need one either.
  const Tensor other = leaf(ones({5}));
  const Tensor inner = x * 2;
  grad({sum(op(inner, other))}, {inner});
}

TEST_CASE("a rule that breaks its contract is named") {
  const Tensor x = leaf(ones({3, 5}));
  const auto with_gradients = [&](auto gradients) {
    const Tensor y =
        record("broken", x.detach(), {x}, {},
               [=](const Saved&, const Tensor&, const NeedsGradient&) -> Gradients { return gradients(); });
    backward(sum(y));
  };
  CHECK_THROWS_WITH(with_gradients([] { return Gradients{}; }),
                    ContainsSubstring("[broken]") && ContainsSubstring("0 gradients for 1"));
  CHECK_THROWS_WITH(with_gradients([] { return Gradients{Gradient()}; }),
                    ContainsSubstring("[broken]") && ContainsSubstring("no gradient"));
  CHECK_THROWS_WITH(
      with_gradients([] {
        return Gradients{ones({5, 3})};
      }),
      ContainsSubstring("[broken]") && ContainsSubstring("(5, 3)") && ContainsSubstring("(3, 5)"));
  CHECK_THROWS_WITH(with_gradients([] {
                      return Gradients{ones({3, 5}, f64)};
                    }),
                    ContainsSubstring("f64") && ContainsSubstring("f32"));
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("an op may return its input as it is") {
  const Tensor x = leaf(ones({3}));
  const Tensor y =
      record("same", x, {x}, {},
             [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients { return {dy * 2}; });
  CHECK(x.is_leaf());
  CHECK_FALSE(y.is_leaf());
  backward(sum(y));
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2, 2});
}

TEST_CASE("a rule computed outside ops gives a gradient, and an error where that is differentiated") {
  const Tensor x = leaf(tensor({3, 5}, f64));
  const auto square = [](const Tensor& v) {
    return record_once("square_outside", (v * v).detach(), {v}, {v},
                       [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                         std::vector<double> gradient = saved[0].to_vector();
                         for (double& value : gradient) value *= 2;
                         return {from_values(gradient, saved[0].shape(), f64) * dy};
                       });
  };
  backward(sum(square(x)));
  CHECK(x.grad().to_vector() == std::vector<double>{6, 10});

  const Tensor first = grad({sum(square(x))}, {x}, {.create_graph = true})[0];
  CHECK(first.to_vector() == std::vector<double>{6, 10});
  CHECK_THROWS_AS(grad({sum(first)}, {x}), GraphError);
  CHECK_THROWS_WITH(grad({sum(first)}, {x}),
                    ContainsSubstring("[square_outside]") && ContainsSubstring("outside ops"));
  // Also when only the cotangent would have to be differentiated.
  const Tensor through = grad({sum(square(x * x))}, {x}, {.create_graph = true})[0];
  CHECK_THROWS_AS(grad({sum(through)}, {x}), GraphError);
}

TEST_CASE("a rule's regions are added in place, also where they overlap") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = leaf(ones({7}, dtype));
  Tensor total = zeros({}, dtype);
  for (std::int64_t i = 0; i + 3 <= 7; ++i)
    total = total + static_cast<double>(i + 1) * sum(slice(x, 0, i, i + 3));
  backward(total + sum(x) + 10 * select(x, 0, 6));
  CHECK(x.grad().to_vector() == std::vector<double>{2, 4, 7, 10, 13, 10, 16});
}

TEST_CASE("the graph can be read as Graphviz text") {
  const Tensor x = leaf(ones({3, 5}));
  const Tensor W = leaf(ones({5, 7}));
  const Tensor y = matmul(tanh(x), W);
  const std::string dot = to_dot(y);
  CHECK_THAT(dot, ContainsSubstring("digraph") && ContainsSubstring("tanh\\nf32 (3, 5)") &&
                      ContainsSubstring("matmul\\nf32 (3, 7)") && ContainsSubstring("leaf\\nf32 (5, 7)"));
  std::size_t edges = 0;
  for (std::size_t at = dot.find("->"); at != std::string::npos; at = dot.find("->", at + 1)) ++edges;
  CHECK(edges == 3);
  CHECK(dot.back() == '\n');
  // Without a graph there is nothing to draw, and that is no error.
  CHECK_THAT(to_dot(ones({3})), ContainsSubstring("digraph") && !ContainsSubstring("->"));
}
