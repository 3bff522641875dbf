#include <string>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// Errors are of the right kind and say what was asked, what was found, with shapes. Those of single ops stand
// in their case rows, those of the graph in graph_test and backward_test; here is what ops have in common.

using namespace fovea;

TEST_CASE("every error is a fovea::Error, and a std::runtime_error") {
  CHECK_THROWS_AS(add(ones({3}), ones({5})), ShapeError);
  CHECK_THROWS_AS(add(ones({3}), ones({5})), Error);
  CHECK_THROWS_AS(add(ones({3}), ones({5})), std::runtime_error);
}

TEST_CASE("shapes that do not fit are named") {
  CHECK_THROWS_WITH(add(ones({2, 3}), ones({2, 5})),
                    "[add] shapes (2, 3) and (2, 5) do not broadcast: 3 against 5 at axis -1");
  CHECK_THROWS_WITH(matmul(zeros({8, 16, 32}), zeros({64, 128})),
                    "[matmul] inner sizes differ: (8, 16, 32) x (64, 128): 32 and 64");
  CHECK_THROWS_WITH(
      linear(zeros({8, 16, 32}), zeros({64, 128})),
      ContainsSubstring("[linear] weight expects 64 channels, input has 32: x (8, 16, 32), W (64, 128)"));
}

TEST_CASE("ids that are not in the vocabulary are named with position and limit") {
  CHECK_THROWS_WITH(
      embedding(zeros({65, 3}), Indices{{1, 2}, {3, 70}}),
      ContainsSubstring("[embedding] id 70 at position (1, 1) is outside the vocabulary of 65"));
  CHECK_THROWS_AS(embedding(zeros({0, 3}), Indices{0}), IndexError);
}

TEST_CASE("f32 and f64 do not mix, in any op of several tensors") {
  const Tensor a = ones({3, 3}), b = ones({3, 3}, f64);
  const auto refuses = [](const std::string& op, const auto& call) {
    INFO(op);
    CHECK_THROWS_AS(call(), DtypeError);
    CHECK_THROWS_WITH(
        call(), ContainsSubstring("[" + op + "]") && ContainsSubstring("f32") && ContainsSubstring("f64"));
  };
  refuses("add", [&] { add(a, b); });
  refuses("mul", [&] { mul(b, a); });
  refuses("matmul", [&] { matmul(a, b); });
  refuses("linear", [&] { linear(a, b); });
  refuses("add", [&] { linear(a, a, select(b, 0, 0)); });
  refuses("where", [&] { where(Bool{true, false, true}, a, b); });
  refuses("maximum", [&] { maximum(a, b); });
  refuses("concat", [&] { concat({a, b}, 0); });
  refuses("concat", [&] { stack({a, b}, 0); });
  refuses("layer_norm", [&] { layer_norm(a, select(b, 0, 0)); });
  refuses("layer_norm", [&] { layer_norm(a, {}, select(b, 0, 0)); });
  refuses("<", [&] { any(a < b); });
  refuses("pow", [&] { pow(a, b); });
  const auto heads = [](const Tensor& x) { return reshape(x, {1, 1, 3, 3}); };
  CHECK_THROWS_AS(attention(heads(a), heads(a), heads(b)), DtypeError);
  CHECK_THROWS_AS(attention(heads(a), heads(b), heads(b)), DtypeError);
}

TEST_CASE("an undefined tensor as an input is an error that says so") {
  const Tensor none, x = ones({3, 3});
  CHECK_THROWS_WITH(x * none, ContainsSubstring("undefined Tensor"));
  CHECK_THROWS_AS(softmax(none), Error);
  CHECK_THROWS_AS(sum(none), Error);
  CHECK_THROWS_AS(reshape(none, {3}), Error);
  CHECK_THROWS_AS(concat({x, none}, 0), Error);
  CHECK_THROWS_AS(layer_norm(none), Error);
  CHECK_THROWS_AS(embedding(none, Indices{0}), Error);
  CHECK_THROWS_AS(cross_entropy(none, Indices{0}), Error);
  CHECK_THROWS_AS(attention(none, none, none), Error);
  CHECK_THROWS_AS(linear(x, none), Error);
  CHECK_THROWS_AS(where(Bool{true}, none, x), Error);
  CHECK_THROWS_AS(backward(none), Error);
  CHECK_THROWS_AS(grad({x}, {none}), Error);
  CHECK_THROWS_AS(grad({none}, {Tensor(ones({3})).set_requires_grad()}), Error);
  CHECK_THROWS_AS(to_dot(none), Error);
}

TEST_CASE("an op that throws leaves no trace in the graph") {
  Tensor x = ones({3, 5});
  x.set_requires_grad();
  CHECK_THROWS_AS(x * ones({7}), ShapeError);
  backward(sum(x * 2));
  CHECK(x.grad().to_vector() == std::vector<double>(15, 2));
  CHECK(x.version() == 0);
}
