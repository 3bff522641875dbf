#include "fovea/layers/state.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

// A layer with tensors of several roles, two of them tied.
struct Model {
  Linear body;
  Tensor head = body.W;
  Tensor table = ones({7});
  Tensor mean = zeros({2});

  explicit Model(std::uint64_t seed) : body(make_body(seed)) {}
  static Linear make_body(std::uint64_t seed) {
    Rng rng(seed);
    return {3, 5, rng};
  }

  static void visit(const Model& self, Visitor& v) {
    v("body", self.body);
    v("head", self.head);
    v.tie("head", "body.W");
    v.frozen("table", self.table);
    v.buffer("mean", self.mean);
  }
};

Tensor& tensor_of(State& state, const std::string& name) {
  for (auto& [own, value] : state.tensors) {
    if (own == name) return value;
  }
  throw Error("no such tensor: " + name);
}

void drop(State& state, const std::string& name) {
  std::erase_if(state.tensors, [&](const NamedTensor& named) { return named.name == name; });
}

TEST_CASE("state: holds every tensor once, outside the graph, as a copy", "[layers]") {
  Model model(1);
  const State saved = state(model);
  REQUIRE(saved.tensors.size() == 4);
  CHECK(saved.tensors[0].name == "body.W");
  CHECK(saved.tensors[1].name == "body.b");
  CHECK(saved.tensors[2].name == "table");
  CHECK(saved.tensors[3].name == "mean");
  REQUIRE(saved.aliases.size() == 1);
  CHECK(saved.aliases[0].name == "head");
  CHECK(saved.aliases[0].original == "body.W");

  const std::vector<double> before = model.body.W.to_vector();
  CHECK_FALSE(saved.tensors[0].tensor.requires_grad());
  model.body.W.mutable_data<float>()[0] += 1;
  CHECK(saved.tensors[0].tensor.to_vector() == before);
}

TEST_CASE("load: writes in place and keeps ties", "[layers]") {
  const Model from(1);
  Model into(2);
  const Tensor W = into.body.W;
  const std::uint64_t version = W.version();
  const LoadReport report = load(into, state(from));
  CHECK(report.complete());
  CHECK(report.loaded == Names{"body.W", "body.b", "table", "mean"});
  CHECK(into.body.W.is_same(W));
  CHECK(into.head.is_same(W));
  CHECK(W.to_vector() == from.body.W.to_vector());
  CHECK(W.version() > version);
  CHECK(W.requires_grad());
}

TEST_CASE("load: backward through a graph that saved the old values is an error", "[layers]") {
  Model model(1);
  Rng rng(3);
  const Tensor x = parameter(randn({2, 3}, rng));
  const Tensor y = sum(model.body(x));
  load(model, state(Model(2)));
  CHECK_THROWS_AS(backward(y), GraphError);
}

TEST_CASE("load: values are converted to the layer's dtype", "[layers]") {
  const Model from(1);
  Model exact = to(Model(2), f64);
  load(exact, state(from));
  CHECK(exact.body.W.dtype() == f64);
  CHECK(exact.body.W.to_vector() == from.body.W.to_vector());
}

TEST_CASE("load: strided values", "[layers]") {
  State saved = state(Model(1));
  Tensor& W = tensor_of(saved, "body.W");
  const std::vector<double> values = W.to_vector();
  W = transpose(clone(transpose(W)));
  REQUIRE_FALSE(W.is_contiguous());
  Model into(2);
  load(into, saved);
  CHECK(into.body.W.to_vector() == values);
}

TEST_CASE("load: names and shapes that do not fit are reported, and nothing is written", "[layers]") {
  State saved = state(Model(1));
  drop(saved, "body.b");
  tensor_of(saved, "table") = ones({11});
  saved.tensors.push_back({"extra", ones({2})});

  Model into(2);
  const std::vector<double> W = into.body.W.to_vector();
  const std::uint64_t version = into.body.W.version();
  try {
    load(into, saved);
    FAIL("it was loaded");
  } catch (const LoadError& error) {
    CHECK(error.report.loaded.empty());
    CHECK(error.report.missing == Names{"body.b"});
    CHECK(error.report.unexpected == Names{"extra"});
    REQUIRE(error.report.misshaped.size() == 1);
    CHECK(error.report.misshaped[0].name == "table");
    CHECK(error.report.misshaped[0].expected == Shape{7});
    CHECK(error.report.misshaped[0].found == Shape{11});
    CHECK_THAT(error.what(),
               ContainsSubstring("nothing was loaded") && ContainsSubstring("missing: body.b") &&
                   ContainsSubstring("unexpected: extra") &&
                   ContainsSubstring("mis-shaped: table is (7,) in the layer and (11,) in the state"));
  }
  CHECK(into.body.W.to_vector() == W);
  CHECK(into.body.W.version() == version);

  const LoadReport report = load(into, saved, {.partial = true});
  CHECK_FALSE(report.complete());
  CHECK(report.loaded == Names{"body.W", "mean"});
  CHECK(report.missing == Names{"body.b"});
  CHECK(into.body.W.to_vector() == tensor_of(saved, "body.W").to_vector());
  CHECK(into.table.to_vector() == std::vector<double>(7, 1.0));
}

TEST_CASE("load: a tied tensor is loaded from any of its names", "[layers]") {
  State saved = state(Model(1));
  const Tensor W = tensor_of(saved, "body.W");
  Model into(2);

  SECTION("the original alone") { saved.aliases.clear(); }
  SECTION("the other name alone") {
    saved.aliases.clear();
    drop(saved, "body.W");
    saved.tensors.push_back({"head", W});
  }
  SECTION("both, with equal values") {
    saved.aliases.clear();
    saved.tensors.push_back({"head", clone(W)});
  }
  load(into, saved);
  CHECK(into.body.W.to_vector() == W.to_vector());
}

TEST_CASE("load: different values for one tied tensor are refused", "[layers]") {
  State saved = state(Model(1));
  saved.aliases.clear();
  saved.tensors.push_back({"head", ones({3, 5})});
  Model into(2);
  const std::vector<double> W = into.body.W.to_vector();
  CHECK_THROWS_AS(load(into, saved, {.partial = true}), ValueError);
  CHECK_THROWS_WITH(load(into, saved), ContainsSubstring("ties 'body.W' and 'head'"));
  CHECK(into.body.W.to_vector() == W);
}

TEST_CASE("load: an alias fills a layer that does not tie", "[layers]") {
  struct Untied {
    Tensor a = parameter(zeros({2}));
    Tensor b = parameter(zeros({2}));
    static void visit(const Untied& self, Visitor& v) {
      v("a", self.a);
      v("b", self.b);
    }
  };
  Untied layer;
  load(layer, {.tensors = {{"a", tensor({3, 5})}}, .aliases = {{"b", "a"}}});
  CHECK(layer.a.to_vector() == std::vector<double>{3, 5});
  CHECK(layer.b.to_vector() == std::vector<double>{3, 5});
  layer.a.mutable_data<float>()[0] = 7;
  CHECK(layer.b.at({0}) == 3);
}

TEST_CASE("load: a state that contradicts itself is refused", "[layers]") {
  Model model(1);
  State saved = state(model);
  saved.tensors.push_back({"mean", zeros({2})});
  CHECK_THROWS_WITH(load(model, saved), ContainsSubstring("has the name 'mean' twice"));
  saved = state(model);
  saved.aliases.push_back({"other", "nothing"});
  CHECK_THROWS_WITH(load(model, saved),
                    ContainsSubstring("'other' as an alias of 'nothing', which it does not have"));
}

}  // namespace
}  // namespace fovea
