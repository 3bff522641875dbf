#include "fovea/layers/recompute.h"

#include <limits>
#include <optional>

#include "cases/cases.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/layers/dropout.h"
#include "fovea/layers/feed_forward.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/self_attention.h"
#include "fovea/layers/sequential.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Bits = std::vector<std::vector<double>>;

// A block that draws: x + dropout(mlp(norm(x))).
struct Block {
  LayerNorm norm;
  FeedForward mlp;
  Dropout drop{0.3};

  Block(std::int64_t d_model, Rng& rng) : norm(d_model), mlp(d_model, 4 * d_model, rng) {}

  Tensor operator()(const Tensor& x) const { return x + drop(mlp(norm(x))); }

  static void visit(const Block& self, Visitor& v) {
    v("norm", self.norm);
    v("mlp", self.mlp);
  }
};

// Several blocks, recomputed or not.
struct Stack {
  std::vector<Block> blocks;
  bool recomputed = false;

  Stack(int depth, std::int64_t d_model, Rng& rng) {
    for (int i = 0; i < depth; ++i) blocks.emplace_back(d_model, rng);
  }

  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const Block& block : blocks) y = recomputed ? recompute(block, y) : block(y);
    return y;
  }

  static void visit(const Stack& self, Visitor& v) { v("blocks", self.blocks); }
};

// The value and all gradients of a stack, and where a TrainMode scope's generator stands after each pass.
Bits run(const Stack& stack, const Tensor& x, std::optional<std::uint64_t> seed) {
  std::optional<TrainMode> training;
  if (seed) training.emplace(*seed);
  std::vector<Tensor> leaves{x};
  for (const NamedTensor& parameter : named_parameters(stack)) leaves.push_back(parameter.tensor);
  const Tensor y = stack(x);
  Rng rng(11);
  const auto position = [] { return static_cast<double>(training_state().value_or(Rng::State{}).position); };
  Bits bits{y.to_vector(), {position()}};
  for (const Tensor& gradient : grad({y}, leaves, {.gradients = {randn(y.shape(), rng, y.dtype())}})) {
    bits.push_back(gradient.to_vector());
  }
  bits.push_back({position()});
  return bits;
}

TEST_CASE("recompute: the same bits as without, dropout included", "[layers]") {
  const auto seed = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(5));
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(1);
  Stack stack = to(Stack(3, 7, rng), dtype);
  Tensor x = randn({2, 5, 7}, rng, dtype);
  x.set_requires_grad();
  const Bits expected = run(stack, x, seed);
  stack.recomputed = true;
  CHECK(run(stack, x, seed) == expected);
  // Also if backward is called outside of the scope that the forward pass was made in.
  std::optional<TrainMode> training;
  if (seed) training.emplace(*seed);
  const Tensor y = stack(x);
  training.reset();
  const TrainMode other(99);
  Rng cotangent(11);
  backward(y, {.gradient = randn(y.shape(), cotangent, dtype)});
  CHECK(x.grad().to_vector() == expected[2]);
  CHECK(stack.blocks[0].norm.gain.grad().to_vector() == expected[3]);
  CHECK(other.rng().state().position == 0);
}

TEST_CASE("recompute: further arguments, and recomputation inside recomputation", "[layers]") {
  Rng rng(1);
  const SelfAttention layer(5, 3, rng);
  Tensor x = randn({2, 7, 5}, rng);
  x.set_requires_grad();
  const auto gradients = [&](const Tensor& y) {
    Rng cotangent(11);
    Bits bits;
    for (const Tensor& gradient :
         grad({y}, {x, layer.Wq, layer.Wo}, {.gradients = {randn(y.shape(), cotangent)}})) {
      bits.push_back(gradient.to_vector());
    }
    return bits;
  };
  const Bits expected = gradients(layer(x, Mask::window(2)));
  CHECK(gradients(recompute(layer, x, Mask::window(2))) == expected);

  Stack inner(2, 5, rng);
  inner.recomputed = true;
  const Bits once = run(inner, x, 3);
  struct Outer {
    Stack stack;
    Tensor operator()(const Tensor& x) const { return recompute(stack, x); }
    static void visit(const Outer& self, Visitor& v) { v("stack", self.stack); }
  };
  const TrainMode training(3);
  const Tensor y = Outer{inner}(x);
  Rng cotangent(11);
  CHECK(grad({y}, {x}, {.gradients = {randn(y.shape(), cotangent)}})[0].to_vector() == once[2]);
}

// A layer of two inputs, with a gain that may be left out.
struct Mix {
  Linear map;
  Tensor operator()(const Tensor& x, double scale, const Tensor& memory, const Tensor& gain = {}) const {
    const Tensor y = tanh(map(x) * memory) * scale;
    return gain.defined() ? y * gain : y;
  }
  static void visit(const Mix& self, Visitor& v) { v("map", self.map); }
};

TEST_CASE("recompute: further tensors are inputs as well", "[layers]") {
  Rng rng(1);
  const Mix layer{to(Linear(3, 5, rng), f64)};
  const auto f = [&](const Tensor& x, const Tensor& memory, const Tensor& gain) {
    return recompute(layer, x, 0.5, memory, Tensor()) + recompute(layer, x, 2.0, memory, gain);
  };
  const GradcheckReport report =
      gradcheck(f, {{"x", randn({2, 3}, rng)}, {"memory", randn({2, 5}, rng)}, {"gain", randn({5}, rng)}},
                {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

// Everything that holds for an op holds for what is recomputed: three orders, layouts, one input at a time,
// nothing left in memory, and changed inputs noticed.
TEST_CASE("recompute: a function passes all checks of an op", "[layers]") {
  const auto f = [](const Tensor& x, const Tensor& W) { return tanh(matmul(x, W)) * sigmoid(matmul(x, W)); };
  Case row;
  row.name = "recompute";
  row.input("x", {3, 5});
  row.input("W", {5, 2});
  row.value = [f](const Inputs& in) { return recompute(f, in["x"], in["W"]); };
  row.oracle = [f](const Inputs& in) { return f(in["x"], in["W"]); };
  const CaseReport report = check(row);
  for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  CHECK(report.passed());
}

TEST_CASE("recompute: gradients of a layer, to second order", "[layers]") {
  Rng rng(1);
  Stack stack(2, 3, rng);
  stack.recomputed = true;
  const GradcheckReport report = gradcheck(stack, randn({2, 3}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("recompute: x with a history that uses the same parameter", "[layers]") {
  const auto f = [](const Tensor& x, const Tensor& W) { return tanh(matmul(x, W)); };
  const auto plain = [&](const Tensor& W) { return f(f(W, W), W); };
  const auto again = [&](const Tensor& W) { return recompute(f, f(W, W), W); };
  Rng rng(1);
  const Tensor W = randn({3, 3}, rng, f64);
  CHECK(gradcheck(plain, W, {.order = 2}).passed());
  CHECK(gradcheck(again, W, {.order = 2}).passed());
}

TEST_CASE("recompute: a parameter that is missed is an error at once", "[layers]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  const Tensor x = randn({2, 3}, rng);
  CHECK_THROWS_AS(recompute([&](const Tensor& x) { return layer(x); }, x), GraphError);
  CHECK_THROWS_WITH(recompute([&](const Tensor& x) { return layer(x); }, x),
                    ContainsSubstring("[recompute] 'matmul' uses a tensor of shape (3, 5)"));
  CHECK_THROWS_WITH(recompute([&](const Tensor&) { return layer.W; }, x), ContainsSubstring("'return' uses"));
  CHECK_NOTHROW(recompute(layer, x));
  // One that is computed on the way counts as well; what is outside the graph does not.
  const Tensor doubled = 2 * layer.W;
  CHECK_THROWS_AS(recompute([&](const Tensor& x) { return matmul(x, doubled); }, x), GraphError);
  CHECK_NOTHROW(recompute([&](const Tensor& x) { return matmul(x, doubled.detach()); }, x));
  CHECK_NOTHROW(recompute(
      [&](const Tensor& x) {
        const NoGrad fixed;
        return layer(x);
      },
      x));
  // After an error, recording goes on as before.
  CHECK(layer(x).requires_grad());
}

TEST_CASE("recompute: what is not recorded is only computed", "[layers]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  const Tensor x = randn({2, 3}, rng);
  const NoGrad fixed;
  CHECK_FALSE(recompute(layer, x).requires_grad());
  CHECK(recompute(layer, x).to_vector() == layer(x).to_vector());
}

TEST_CASE("recompute: a gradient of another graph, taken inside", "[layers]") {
  Tensor other = tensor({2, 3}), x = tensor({5, 7});
  other.set_requires_grad();
  x.set_requires_grad();
  const auto square = [](const Tensor& x) { return x * x; };
  const Tensor y = recompute(square, other);
  const auto f = [&](const Tensor& x) {
    return x * grad({y}, {other}, {.gradients = {ones({2})}, .retain_graph = true})[0];
  };
  const Tensor z = recompute(f, x);
  CHECK(z.to_vector() == std::vector<double>{20, 42});
  CHECK(grad({z}, {x}, {.gradients = {ones({2})}})[0].to_vector() == std::vector<double>{4, 6});
}

TEST_CASE("recompute: a parameter changed before backward is noticed", "[layers]") {
  Rng rng(1);
  Linear layer(3, 5, rng);
  const Tensor y = recompute(layer, randn({2, 3}, rng));
  layer.W.mutable_data<float>()[0] = 2;
  CHECK_THROWS_WITH(backward(y, {.gradient = ones(y.shape())}),
                    ContainsSubstring("[recompute]") && ContainsSubstring("changed after it was used"));
}

TEST_CASE("recompute: frozen tensors have no gradient, and x needs none", "[layers]") {
  Rng rng(1);
  Linear layer(3, 5, rng);
  layer.b.set_requires_grad(false);
  const Tensor y = recompute(layer, randn({2, 3}, rng));
  backward(y, {.gradient = ones(y.shape())});
  CHECK(layer.W.grad().defined());
  CHECK_FALSE(layer.b.grad().defined());
}

TEST_CASE("recompute: Anomaly names the op inside", "[layers]") {
  const Anomaly watch;
  Tensor x = tensor({0, 1});
  x.set_requires_grad();
  const Tensor y = recompute([](const Tensor& x) { return pow(x, 0.5); }, x);
  CHECK_THROWS_WITH(backward(y, {.gradient = ones({2})}), ContainsSubstring("[pow]"));
}

TEST_CASE("recompute: memory of a deep stack is that of its borders and one block", "[layers]") {
  Rng rng(1);
  Stack stack(16, 32, rng);
  const Tensor x = randn({512, 32}, rng);
  const auto peak = [&](bool recomputed) {
    stack.recomputed = recomputed;
    const std::int64_t before = memory().live_bytes;
    reset_peak_memory();
    const Tensor y = stack(x);
    backward(y, {.gradient = ones(y.shape())});
    for (const NamedTensor& parameter : named_parameters(stack)) Tensor(parameter.tensor).set_grad({});
    return memory().peak_bytes - before;
  };
  const std::int64_t plain = peak(false);
  CHECK(peak(true) * 3 < plain);
}

}  // namespace
}  // namespace fovea
