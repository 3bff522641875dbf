#include "cases/attention_oracle.h"
#include "cases/cases.h"

namespace fovea {

using cases::attention_by_loops;
using cases::every_key;
using cases::keys_up_to_query;
using cases::output_and_weights;
using cases::Visible;

namespace {

// Projects x by matmul and computes attention with one head by loops.
Tensor project_and_attend(const Inputs& in, const Visible& visible) {
  const Tensor& x = in["x"];
  const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1, time = x.size(-2);
  const auto project = [&](const char* W) {
    return reshape(matmul(reshape(x, {batch, 1, time, x.size(-1)}), in[W]), {batch, 1, time, in[W].size(1)});
  };
  const Inputs projected({{"q", project("Wq")}, {"k", project("Wk")}, {"v", project("Wv")}});
  const Attention heads = attention_by_loops(projected, {.visible = visible});
  const Tensor y = output_and_weights({matmul(heads.output, in["Wo"]), heads.weights});
  Shape result = x.shape();
  result.back() = y.size(-1);
  return reshape(y, result);
}

void add_self_attention(Cases& cases, const std::string& name, const Shape& shape, const Mask& mask,
                        const Visible& visible) {
  cases.add(name, [&](Case& c) {
    c.input("x", shape);
    for (const char* weight : {"Wq", "Wk", "Wv"}) c.input(weight, {5, 2}, {-0.6, 0.6});
    c.input("Wo", {2, 5});
    c.not_empty = {2};
    c.value = [=](const Inputs& in) {
      const Attention y = self_attention(in["x"], in["Wq"], in["Wk"], in["Wv"], in["Wo"], mask);
      return concat({y.output, y.weights}, -1);
    };
    c.oracle = [=](const Inputs& in) { return project_and_attend(in, visible); };
    c.refuses<ShapeError>("x with one axis", "[self_attention]", [](const Inputs& in) {
      self_attention(zeros({5}, f64), in["Wq"], in["Wk"], in["Wv"], in["Wo"]);
    });
    c.refuses<ShapeError>("a weight for more channels than x has", "64 channels, input has 5",
                          [](const Inputs& in) {
                            self_attention(in["x"], zeros({64, 2}, f64), in["Wk"], in["Wv"], in["Wo"]);
                          });
  });
}

}  // namespace

void add_self_attention_cases(Cases& cases) {
  add_self_attention(cases, "self_attention", {2, 3, 5}, Mask::causal(), keys_up_to_query);
  add_self_attention(cases, "self_attention, without a batch", {3, 5}, Mask::causal(), keys_up_to_query);
  add_self_attention(cases, "self_attention, unmasked", {2, 3, 5}, {}, every_key);
}

}  // namespace fovea
