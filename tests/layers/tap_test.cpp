#include "fovea/layers/tap.h"

#include <thread>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/feed_forward.h"
#include "fovea/layers/recompute.h"
#include "fovea/layers/sequential.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr std::int64_t T = 5, C = 3;

// It has the same address as its first member, and both report a value of the same name.
struct Inner {
  Tensor scale = parameter(scalar(2));
  Tensor operator()(const Tensor& x) const { return tap(this, "value", scale * x); }
  static void visit(const Inner& self, Visitor& v) { v("scale", self.scale); }
};
struct Outer {
  Inner inner;
  Tensor operator()(const Tensor& x) const { return tap(this, "value", inner(x) + 1.0); }
  static void visit(const Outer& self, Visitor& v) { v("inner", self.inner); }
};

struct Recomputed {
  FeedForward mlp;
  Tensor operator()(const Tensor& x) const { return recompute(mlp, x); }
  static void visit(const Recomputed& self, Visitor& v) { v("mlp", self.mlp); }
};

TEST_CASE("tap: without hooks the value is returned unchanged", "[layers]") {
  const Inner layer;
  const Tensor x = tensor({1, 2});
  CHECK(tap(&layer, "value", x).is_same(x));
  CHECK_FALSE(hooked(&layer, "value"));
}

TEST_CASE("tap: a layer is identified by address and type", "[layers]") {
  const Outer model;
  REQUIRE(static_cast<const void*>(&model) == static_cast<const void*>(&model.inner));
  Hooks hooks(model);
  hooks.record("*");
  model(tensor({3}));
  REQUIRE(hooks.records().size() == 2);
  CHECK(hooks["inner.value"].item() == 6);
  CHECK(hooks["value"].item() == 7);
  CHECK(hooks.records()[1].layer.empty());
}

TEST_CASE("tap: calls are counted, and forgotten records do not restart the count", "[layers]") {
  const Outer model;
  Hooks hooks(model);
  hooks.record("inner.value");
  for (const double x : {3.0, 5.0}) model(tensor({x}));
  REQUIRE(hooks.records().size() == 2);
  CHECK(hooks.records()[0].call == 0);
  CHECK(hooks.records()[1].call == 1);
  CHECK(hooks["inner.value"].item() == 10);
  hooks.clear();
  model(tensor({7}));
  CHECK(hooks.records().at(0).call == 2);
}

TEST_CASE("tap: replacements apply in order, outer hooks before inner ones", "[layers]") {
  const Outer model;
  Hooks outer(model);
  outer.record("inner.value").replace("inner.value", [](const Tapped& t) { return t.value * 10.0; });
  Hooks inner(model);
  inner.record("inner.value").replace("inner.*", [](const Tapped& t) { return t.value + 0.5; }).record("*");
  CHECK(model(tensor({3})).item() == 61.5);
  CHECK(outer["inner.value"].item() == 6);
  CHECK(inner.records()[0].value.item() == 60);
  CHECK(inner["inner.value"].item() == 60.5);
  CHECK(inner["value"].item() == 61.5);
}

TEST_CASE("tap: gradients flow through replacements and reach recorded values", "[layers]") {
  const Outer model;
  Hooks hooks(model);
  hooks.replace("inner.value", [](const Tapped& t) { return t.value * t.value; }).record("inner.value");
  const Tensor y = model(scalar(3));
  CHECK(grad({y}, {hooks["inner.value"]}, {.retain_graph = true})[0].item() == 1);
  backward(y);
  CHECK(model.inner.scale.grad().item() == 2 * 6 * 3);
}

TEST_CASE("tap: layers of other models, copies and other threads are ignored", "[layers]") {
  const Outer model, other;
  Hooks hooks(model);
  hooks.record("*");
  other(tensor({3}));
  const Outer copy = model;
  copy(tensor({3}));
  std::thread([&] { model(tensor({3})); }).join();
  CHECK(hooks.records().empty());
}

TEST_CASE("tap: a replacement may run the model itself", "[layers]") {
  const Outer model;
  Hooks hooks(model);
  hooks.record("*").replace("inner.value", [&](const Tapped& t) { return model(t.value); });
  CHECK(model(tensor({3})).item() == 14);
  CHECK(hooks.records().size() == 2);
}

TEST_CASE("tap: outer hooks continue after inner ones end", "[layers]") {
  const Outer model;
  Hooks hooks(model);
  hooks.record("value");
  {
    Hooks inner(model);
    inner.replace("value", [](const Tapped& t) { return t.value * 0.0; });
    CHECK(model(tensor({3})).item() == 0);
  }
  CHECK(model(tensor({3})).item() == 7);
  CHECK(hooks.records().size() == 2);
}

TEST_CASE("tap: * in a path matches any characters", "[layers]") {
  Rng rng(1);
  const Sequential model(FeedForward(C, 7, rng), FeedForward(C, 11, rng));
  const auto recorded = [&](std::string_view path) {
    Hooks hooks(model);
    hooks.record(path);
    model(zeros({T, C}));
    return hooks.records().size();
  };
  CHECK(recorded("*") == 2);
  CHECK(recorded("*.hidden") == 2);
  CHECK(recorded("1.hidden") == 1);
  CHECK(recorded("1.*dd*") == 1);
  CHECK(recorded("1.hidden.*") == 0);
  CHECK(recorded("hidden") == 0);
  CHECK(recorded("") == 0);
}

TEST_CASE("tap: misuse is an error", "[layers]") {
  const Outer model;
  Hooks hooks(model);
  CHECK_THROWS_WITH(hooks["inner.value"], ContainsSubstring("nothing was recorded as 'inner.value'"));
  CHECK_THROWS_AS(hooks.replace("value", {}), ValueError);
  hooks.replace("inner.value", [](const Tapped& t) { return t.call == 0 ? zeros({2}) : to(t.value, f64); });
  CHECK_THROWS_WITH(
      model(scalar(3)),
      ContainsSubstring("the replacement of 'inner.value' must keep its shape (), and is (2,)"));
  CHECK_THROWS_AS(model(scalar(3)), DtypeError);
  CHECK_THROWS_WITH(hooks["inner.valeu"], ContainsSubstring("reported so far: inner.value"));
  CHECK(hooked(&model.inner, "value"));
  CHECK_FALSE(hooked(&model, "value"));
}

TEST_CASE("tap: what is recomputed reports once, outside any graph", "[layers]") {
  Rng rng(1);
  const Recomputed model{FeedForward(C, 7, rng)};
  Hooks hooks(model);
  hooks.record("mlp.hidden");
  const Tensor y = model(randn({T, C}, rng));
  backward(y, {.gradient = ones(y.shape())});
  CHECK(model.mlp.up.W.grad().defined());
  REQUIRE(hooks.records().size() == 1);
  CHECK_FALSE(hooks["mlp.hidden"].requires_grad());
}

TEST_CASE("tap: a value that is recomputed can be replaced only under NoGrad", "[layers]") {
  Rng rng(1);
  const Recomputed model{FeedForward(C, 7, rng, {.bias = false})};
  const Tensor x = randn({T, C}, rng);
  Hooks hooks(model);
  hooks.replace("mlp.hidden", [](const Tapped& t) { return t.value * 0.0; });
  CHECK_THROWS_WITH(model(x), ContainsSubstring("[recompute] Hooks replace 'hidden'"));
  const NoGrad scope;
  for (const double y : model(x).to_vector()) CHECK(y == 0);
}

}  // namespace
}  // namespace fovea
