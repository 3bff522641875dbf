#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

Tensor leaf(Tensor x) { return x.set_requires_grad(); }
using Values = std::vector<double>;

}  // namespace

TEST_CASE("a value used several times adds up its gradients") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor a = leaf(scalar(1, dtype));
  const Tensor b = a + a;
  const Tensor c = b + b;
  backward(c);
  CHECK(a.grad().item() == 4);

  const Tensor x = leaf(scalar(1, dtype));
  backward(x * x + x * x + x * x);
  CHECK(x.grad().item() == 6);
}

TEST_CASE("two passes over two graphs add up to exactly twice one") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  const Tensor x = leaf(randn({3, 5}, rng, dtype));
  const Tensor u = randn({3, 5}, rng, dtype);
  backward(tanh(x) * x, {.gradient = u});
  const Values once = x.grad().to_vector();
  backward(tanh(x) * x, {.gradient = u});
  const Values twice = x.grad().to_vector();
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
  backward(tanh(x) * x, {.gradient = u});
  CHECK(x.grad().to_vector() == once);
}

TEST_CASE("micrograd's published check") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor a = leaf(scalar(-4, dtype));
  const Tensor b = leaf(scalar(2, dtype));
  Tensor c = a + b;
  Tensor d = a * b + pow(b, 3);
  c = c + (c + 1);
  c = c + (1 + c + (-a));
  d = d + (d * 2 + relu(b + a));
  d = d + (3 * d + relu(b - a));
  const Tensor e = c - d;
  const Tensor f = pow(e, 2);
  Tensor g = f / 2.0;
  g = g + 10.0 / f;
  backward(g);
  CHECK(g.item() == Approx(24.7041).margin(5e-5));
  CHECK(a.grad().item() == Approx(138.8338).margin(5e-5));
  CHECK(b.grad().item() == Approx(645.5773).margin(5e-5));
}

TEST_CASE("a second pass over a freed graph is an error that says what to do") {
  const Tensor x = leaf(tensor({1, 2, 3}));
  const Tensor inner = x * x;
  const Tensor y = sum(inner * x);
  backward(y);
  CHECK_THROWS_AS(backward(y), GraphError);
  CHECK_THROWS_WITH(
      backward(y),
      "[backward] this graph was freed by an earlier backward; pass {.retain_graph = true} there to use "
      "it twice");
  // Also through a part of it that the next graph shares.
  CHECK_THROWS_WITH(backward(sum(inner)), ContainsSubstring("freed by an earlier backward"));
  CHECK_THROWS_WITH(grad({y}, {x}), ContainsSubstring("freed by an earlier backward"));
  CHECK(x.grad().to_vector() == Values{3, 12, 27});
}

TEST_CASE("a pass that throws leaves gradients and graph as they were") {
  Tensor x = leaf(tensor({1, 2, 3}));
  const Tensor y = sum(exp(x * x));
  x.mutable_data<float>()[1] = 5;
  // Each time the true cause, although exp and sum come first and had their turn.
  for (int pass = 0; pass < 2; ++pass) {
    CHECK_THROWS_WITH(backward(y), ContainsSubstring("[mul]") && ContainsSubstring("was changed after"));
    CHECK_THROWS_WITH(grad({y}, {x}), ContainsSubstring("[mul]") && ContainsSubstring("was changed after"));
  }
  CHECK(!x.grad().defined());
}

TEST_CASE("grad gives arrays that nothing else shares") {
  const Tensor x = leaf(tensor({1, 2, 3})), z = leaf(tensor({4, 5, 6}));
  const Tensor cotangent = tensor({7, 8, 9});
  std::vector<Tensor> gradients = grad({x + z}, {x, z}, {.gradients = {cotangent}});
  gradients[0].mutable_data<float>()[0] = -1;
  CHECK(gradients[1].to_vector() == Values{7, 8, 9});
  CHECK(cotangent.to_vector() == Values{7, 8, 9});
  // The gradient of a sum repeats one number; here each element has its place.
  CHECK(grad({sum(x)}, {x})[0].is_contiguous());
}

TEST_CASE("retain_graph keeps a graph for another pass") {
  const Tensor x = leaf(tensor({1, 2, 3}));
  const Tensor y = sum(exp(x) * x);
  backward(y, {.retain_graph = true});
  const Values once = x.grad().to_vector();
  backward(y);
  for (std::size_t i = 0; i < 3; ++i) CHECK(x.grad().to_vector()[i] == 2 * once[i]);
  CHECK_THROWS_AS(backward(y), GraphError);
}

TEST_CASE("create_graph makes gradients that can be differentiated") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = leaf(scalar(2, dtype));
  const Tensor y = pow(x, 4);
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor second = grad({first}, {x}, {.create_graph = true})[0];
  const Tensor third = grad({second}, {x}, {.create_graph = true})[0];
  const Tensor fourth = grad({third}, {x})[0];
  CHECK(first.item() == Approx(32));
  CHECK(second.item() == Approx(48));
  CHECK(third.item() == Approx(48));
  CHECK(fourth.item() == Approx(24));
  CHECK_FALSE(fourth.requires_grad());

  // Through backward, gradients land in grad() with a graph of their own.
  const Tensor w = leaf(scalar(3, dtype));
  backward(w * w * w, {.create_graph = true});
  CHECK(w.grad().item() == Approx(27));
  const Tensor of_gradient = grad({w.grad() * 2}, {w})[0];
  CHECK(of_gradient.item() == Approx(36));
}

TEST_CASE("without create_graph a gradient has no graph") {
  const Tensor x = leaf(scalar(2));
  const Tensor first = grad({x * x}, {x})[0];
  CHECK_FALSE(first.requires_grad());
  CHECK_THROWS_WITH(grad({first}, {x}), ContainsSubstring("nothing to differentiate"));
}

TEST_CASE("an output of several elements needs a gradient of its shape and dtype") {
  const Tensor x = leaf(ones({3, 5}));
  CHECK_THROWS_AS(backward(x * 2), ShapeError);
  CHECK_THROWS_WITH(backward(x * 2), ContainsSubstring("[backward]") && ContainsSubstring("(3, 5)"));
  CHECK_THROWS_AS(backward(x * 2, {.gradient = ones({5, 3})}), ShapeError);
  CHECK_THROWS_WITH(backward(x * 2, {.gradient = ones({5, 3})}),
                    ContainsSubstring("(5, 3)") && ContainsSubstring("(3, 5)"));
  CHECK_THROWS_WITH(backward(x * 2, {.gradient = ones({3, 5}, f64)}),
                    ContainsSubstring("f64") && ContainsSubstring("f32"));
  CHECK_FALSE(x.grad().defined());
  // One element is enough, whatever the rank.
  CHECK_NOTHROW(backward(sum(x * 2, {0, 1}, keepdims)));
}

TEST_CASE("nothing to differentiate is an error") {
  CHECK_THROWS_AS(backward(scalar(1)), GraphError);
  CHECK_THROWS_WITH(backward(sum(ones({3}))),
                    ContainsSubstring("[backward]") && ContainsSubstring("requires a gradient"));
  const Tensor x = leaf(ones({3}));
  NoGrad off;
  CHECK_THROWS_AS(backward(sum(x)), GraphError);
}

TEST_CASE("a pass that throws changes no gradient") {
  Tensor x = leaf(ones({3}));
  Tensor w = leaf(ones({3}));
  backward(sum(x * w));
  const Values before = x.grad().to_vector();
  // w gets its gradient before the rule of exp finds that its value has changed.
  const Tensor e = exp(x);
  const Tensor y = sum(w * 3 + e);
  e.detach().mutable_data<float>()[0] = 0;
  CHECK_THROWS_AS(backward(y), GraphError);
  CHECK(x.grad().to_vector() == before);
  CHECK(w.grad().to_vector() == before);
}

TEST_CASE("grad gives gradients of tensors on the way and leaves grad() alone") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = leaf(tensor({1, 2, 3}, dtype));
  const Tensor h = x * x;
  const Tensor y = sum(h * h);
  const std::vector<Tensor> gradients = grad({y}, {h, x, h});
  CHECK(gradients[0].to_vector() == Values{2, 8, 18});
  CHECK(gradients[1].to_vector() == Values{4, 32, 108});
  CHECK(gradients[2].to_vector() == gradients[0].to_vector());
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_AS(h.grad(), GraphError);
  CHECK_THROWS_WITH(h.grad(), ContainsSubstring("'mul'") && ContainsSubstring("grad(outputs, inputs)"));
}

TEST_CASE("grad of several outputs is that of their weighted sum") {
  const Tensor x = leaf(tensor({1, 2, 3}, f64));
  const Tensor a = x * x, b = exp(x * 0.0);
  const Tensor u = tensor({5, 7, 11}, f64);
  CHECK(grad({a, sum(x)}, {x}, {.gradients = {u, scalar(2, f64)}})[0].to_vector() == Values{12, 30, 68});
  CHECK(grad({x}, {x}, {.gradients = {u}})[0].to_vector() == Values{5, 7, 11});
  CHECK(grad({a, a}, {a}, {.gradients = {u, u}})[0].to_vector() == Values{10, 14, 22});
  CHECK(grad({a}, {}).empty());
  CHECK_THROWS_AS(grad({a, b}, {x}, {.gradients = {u}}), ValueError);
}

TEST_CASE("an input that no output depends on is an error unless it is allowed") {
  const Tensor x = leaf(ones({3}, f64));
  const Tensor unused = leaf(ones({2, 5}, f64));
  CHECK_THROWS_AS(grad({sum(x)}, {x, unused}), GraphError);
  CHECK_THROWS_WITH(grad({sum(x)}, {x, unused}), ContainsSubstring("input 1") &&
                                                     ContainsSubstring("(2, 5)") &&
                                                     ContainsSubstring("allow_unused"));
  const std::vector<Tensor> gradients = grad({sum(x)}, {x, unused}, {.allow_unused = true});
  CHECK(gradients[1].shape() == Shape{2, 5});
  CHECK(gradients[1].dtype() == f64);
  CHECK(gradients[1].to_vector() == Values(10, 0));
  CHECK_THROWS_WITH(grad({sum(x)}, {ones({3})}),
                    ContainsSubstring("input 0") && ContainsSubstring("does not require a gradient"));
}

TEST_CASE("each leaf's gradient has an array of its own") {
  const Tensor x = leaf(ones({3}));
  const Tensor y = leaf(ones({3}));
  const Tensor u = tensor({1, 2, 3});
  backward(x + y, {.gradient = u});
  Tensor gradient = x.grad();
  gradient.mutable_data<float>()[0] = 100;
  CHECK(y.grad().to_vector() == Values{1, 2, 3});
  CHECK(u.to_vector() == Values{1, 2, 3});
  // A gradient that someone holds is not added to under their hands.
  const Tensor held = y.grad();
  backward(x + y, {.gradient = u});
  CHECK(held.to_vector() == Values{1, 2, 3});
  CHECK(y.grad().to_vector() == Values{2, 4, 6});
}

TEST_CASE("set_grad and set_requires_grad say what does not fit") {
  Tensor x = leaf(ones({3, 5}));
  CHECK_THROWS_AS(x.set_grad(ones({5, 3})), ShapeError);
  CHECK_THROWS_WITH(x.set_grad(ones({3, 5}, f64)), ContainsSubstring("f64") && ContainsSubstring("f32"));
  CHECK_THROWS_AS(ones({3}).set_grad(ones({3})), GraphError);
  CHECK_NOTHROW(ones({3}).set_grad({}));
  Tensor y = x * 2;
  CHECK_THROWS_WITH(y.set_requires_grad(false),
                    ContainsSubstring("[set_requires_grad]") && ContainsSubstring("'affine'"));
  CHECK_THROWS_AS(y.set_grad(ones({3, 5})), GraphError);
  x.set_grad(ones({3, 5}));
  x.set_requires_grad(false);
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("turning a leaf off does not disturb the graphs that it is in") {
  Tensor x = leaf(ones({3}));
  const Tensor w = leaf(tensor({2, 3, 5}));
  const Tensor y = sum(x * w);
  x.set_requires_grad(false);
  CHECK_NOTHROW(backward(y));
  CHECK(w.grad().to_vector() == Values{1, 1, 1});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a graph outlives the handles of its leaves") {
  Tensor w = leaf(tensor({2, 3, 5}));
  Tensor y;
  {
    const Tensor x = leaf(tensor({7, 11, 13}));
    y = sum(x * w);
  }
  CHECK_NOTHROW(backward(y));
  CHECK(w.grad().to_vector() == Values{7, 11, 13});
}

TEST_CASE("a mixed-dtype graph hands each leaf a gradient of its own dtype") {
  const Tensor x = leaf(tensor({1, 2, 3}, f32));
  const Tensor w = leaf(tensor({5, 7, 11}, f64));
  backward(sum(to(x, f64) * w));
  CHECK(x.grad().dtype() == f32);
  CHECK(w.grad().dtype() == f64);
  CHECK(x.grad().to_vector() == Values{5, 7, 11});
}

TEST_CASE("graphs on several threads that share leaves lose no gradient") {
  const Tensor x = leaf(ones({37}, f64));
  const Tensor w = leaf(full({37}, 2, f64));
  constexpr int threads = 4, passes = 200;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < passes; ++i) backward(sum(x * w + x));
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(x.grad().to_vector() == Values(37, 3.0 * threads * passes));
  CHECK(w.grad().to_vector() == Values(37, 1.0 * threads * passes));
}

TEST_CASE("one thread may read a gradient that others add to") {
  const Tensor x = leaf(ones({37}, f64));
  std::vector<std::thread> workers;
  workers.reserve(2);
  for (int t = 0; t < 2; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) backward(sum(x * 2));
    });
  }
  bool consistent = true;
  for (int i = 0; i < 100; ++i) {
    const Tensor now = x.grad();
    if (!now.defined()) continue;
    const Values values = now.to_vector();
    consistent = consistent && values == Values(37, values[0]);
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(consistent);
  CHECK(x.grad().to_vector() == Values(37, 400.0));
}
