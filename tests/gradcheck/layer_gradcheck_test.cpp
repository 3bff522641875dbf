#include "fovea/gradcheck/layer_gradcheck.h"

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/multi_head_attention.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

// x W + b, where the gradient of b is off by one part in a thousand.
struct Wrong {
  Linear linear;
  static void visit(const Wrong& self, Visitor& v) { v("linear", self.linear); }
  Tensor operator()(const Tensor& x) const {
    const Tensor y = linear(x);
    return record("wrong", y + linear.b * 0.0, {y, linear.b}, {},
                  [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {dy, sum(dy, 0) * 1e-3};
                  });
  }
};

// A model that uses one table twice, for its embeddings and for its logits.
struct TiedModel {
  Embedding in;
  Tensor out = in.table;
  static void visit(const TiedModel& self, Visitor& v) {
    v("in", self.in);
    v("out", self.out);
    v.tie("out", "in.table");
  }
  Tensor operator()(const Indices& ids) const { return matmul(in(ids), transpose(out)); }
};

TEST_CASE("gradcheck of a layer names the parameter whose gradient is wrong", "[layers]") {
  Rng rng(1);
  const Wrong layer{Linear(3, 5, rng)};
  const GradcheckReport report = gradcheck(layer, randn({2, 3}, rng));
  CHECK_FALSE(report.passed());
  REQUIRE(report.failures.size() == 5);
  for (const ElementCheck& failure : report.failures) CHECK(failure.input == "linear.b");
}

TEST_CASE("gradcheck of a layer does not change the layer or its input", "[layers]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  const Tensor x = randn({2, 3}, rng);
  const std::vector<double> W = layer.W.to_vector();
  CHECK(gradcheck(layer, x).passed());
  CHECK(layer.W.dtype() == f32);
  CHECK(layer.W.to_vector() == W);
  CHECK(layer.W.version() == 0);
  CHECK_FALSE(layer.W.grad().defined());
  CHECK_FALSE(x.requires_grad());
}

TEST_CASE("gradcheck of a layer moves a tied tensor in both places at once", "[layers]") {
  Rng rng(1);
  const GradcheckReport report = gradcheck(TiedModel{Embedding(7, 3, rng)}, Indices{2, 6, 2, 0, 1});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.elements == 21);
}

TEST_CASE("gradcheck of a layer takes several named inputs", "[layers]") {
  Rng rng(1);
  const MultiHeadAttention layer(6, 3, rng, {.bias = false});
  const Tensor x = randn({2, 3, 6}, rng), context = randn({2, 5, 6}, rng);
  const GradcheckReport report = gradcheck(layer, {{"x", x}, {"context", context}});
  CHECK(report);
  CHECK(report.elements == 4 * 36 + 36 + 60);
  CHECK(report.tensors.back().input == "context");
  CHECK_THROWS_WITH(gradcheck(layer, {{"a", x}, {"b", x}, {"c", x}}), ContainsSubstring("with 3 tensors"));
}

}  // namespace
}  // namespace fovea
