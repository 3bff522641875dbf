#include <cmath>
#include <limits>
#include <string>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// The first op whose value or gradient turns non-finite is named, with its shape.

using namespace fovea;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(Tensor x) { return x.set_requires_grad(); }

}  // namespace

TEST_CASE("Anomaly names the op whose value turns non-finite, its shape and the place") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({{1, 2, 3}, {4, 1000, 6}}, dtype);
  CHECK_NOTHROW(exp(x));
  const Anomaly scope;
  CHECK_THROWS_AS(exp(x), NonFiniteError);
  CHECK_THROWS_WITH(exp(x), ContainsSubstring("[exp]") && ContainsSubstring("(2, 3)") &&
                                ContainsSubstring("inf at (1, 1)"));
  CHECK_THROWS_WITH(log(-x), ContainsSubstring("[log]") && ContainsSubstring("nan at (0, 0)"));
  CHECK_THROWS_WITH(transpose(x) / zeros({2}, dtype),
                    ContainsSubstring("[div]") && ContainsSubstring("(3, 2)"));
  CHECK_NOTHROW(tanh(x) * 3);
}

TEST_CASE("Anomaly names the op whose gradient turns non-finite") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = leaf(tensor({{1, 0, 3}}, dtype));
  const Anomaly scope;
  const Tensor y = sum(pow(x, 0.5) * 3);
  CHECK_THROWS_AS(backward(y, {.retain_graph = true}), NonFiniteError);
  CHECK_THROWS_WITH(backward(y),
                    ContainsSubstring("pow") && ContainsSubstring("gradient") && ContainsSubstring("(1, 3)"));
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("Anomaly does not mind what a rule passes through on its way to a finite gradient") {
  const Dtype dtype = GENERATE(f32, f64);
  const bool create_graph = GENERATE(false, true);
  const Tensor x = leaf(tensor({0, 4}, dtype));
  const Anomaly scope;
  CHECK(grad({sum(sqrt(x))}, {x}, {.create_graph = create_graph})[0].to_vector() ==
        std::vector<double>{0, 0.25});
  CHECK(grad({sum(pow(x, tensor({2, 3}, dtype)))}, {x}, {.create_graph = create_graph})[0].to_vector() ==
        std::vector<double>{0, 48});
}

TEST_CASE("Anomaly reports a NaN that comes in at its first use") {
  const Anomaly scope;
  const Tensor x = tensor({1, not_a_number, 3});
  CHECK_THROWS_AS(x * 2, NonFiniteError);
  CHECK_THROWS_WITH(ones({2, 3}) + x, ContainsSubstring("[add]") && ContainsSubstring("input 1") &&
                                          ContainsSubstring("nan at (1,)"));
}

TEST_CASE("Anomaly lets pass an infinity that comes in, as a mask does") {
  const Tensor x = leaf(tensor({1, 2, 3}));
  const Anomaly scope;
  const Tensor masked = where(Bool{true, false, true}, x, -infinity);
  CHECK_NOTHROW(backward(sum(softmax(masked) * tensor({1, 2, 3}))));
  CHECK(x.grad().at({1}) == 0);
  CHECK_THROWS_WITH(masked - masked, ContainsSubstring("[sub]") && ContainsSubstring("nan at (1,)"));
}

TEST_CASE("an attention whose mask hides everything passes under Anomaly") {
  const Tensor q = leaf(ones({1, 1, 2, 3}));
  const Anomaly scope;
  const Tensor y = attention(q, q, q, {.mask = Mask::lengths({0})});
  CHECK_NOTHROW(backward(sum(y)));
}

TEST_CASE("Anomaly ends with its scope, and only watches its own thread's ops") {
  const Tensor x = tensor({1000.0, 1});
  {
    const Anomaly outer;
    { const Anomaly inner; }
    CHECK_THROWS_AS(exp(x), NonFiniteError);
  }
  CHECK_NOTHROW(exp(x));
}

TEST_CASE("without Anomaly non-finite numbers pass as IEEE 754 has it") {
  const Tensor x = leaf(tensor({0, -1, 1}));
  const Tensor y = log(x);
  CHECK(y.at({0}) == -infinity);
  CHECK(std::isnan(y.at({1})));
  CHECK_NOTHROW(backward(sum(y)));
  CHECK(x.grad().at({0}) == infinity);
  CHECK(x.grad().at({2}) == 1);
}
