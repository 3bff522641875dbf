#include <cmath>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/gradcheck/rows.h"

namespace fovea {
namespace {

// sin(w x) or cos(w x), for which Fovea has no op.
Tensor wave(const Tensor& x, double w, bool cosine) {
  std::vector<double> values = x.to_vector();
  for (double& v : values) v = cosine ? std::cos(w * v) : std::sin(w * v);
  return record(cosine ? "cos" : "sin", to(from_values(values, x.shape(), f64), x.dtype()), {x}, {x},
                [=](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {(cosine ? -w : w) * wave(saved[0], w, !cosine) * dy};
                });
}

class Rows {
 public:
  void add(const std::string& name, NamedFunction f, const Inputs& inputs, GradcheckOptions options = {}) {
    rows_.push_back({name, std::move(f), [inputs](Rng&) { return inputs; }, std::move(options)});
  }
  void add(const std::string& name, const Function& f, std::initializer_list<double> x,
           GradcheckOptions options = {}) {
    add(
        name, [f](const Inputs& in) { return f(in["x"]); },
        {{"x", from_values(std::vector<double>(x), {static_cast<std::int64_t>(x.size())}, f64)}},
        std::move(options));
  }
  std::vector<GradcheckRow> take() { return std::move(rows_); }

 private:
  std::vector<GradcheckRow> rows_;
};

void add_kinks(Rows& rows) {
  rows.add("relu at 0", relu, {0, 0.5, -0.5});
  rows.add("relu at 0 alone", relu, {0}, {.expect_zero = {"x"}});
  rows.add("relu at 1e-3", relu, {1e-3, -1e-3});
  rows.add("relu at 1e-8", relu, {1e-8, 0.5, -1e-8});
  rows.add("abs at 0", [](const Tensor& x) { return abs(x); }, {0, 1});
  rows.add("max with ties", [](const Tensor& x) { return max(x, 0); }, {2, 1, 2, 2});
  rows.add("maximum of equals", [](const Inputs& in) { return maximum(in["a"], in["b"]); },
           {{"a", tensor({1, -2, 3}, f64)}, {"b", tensor({1, -2, 2}, f64)}});
  rows.add("clamp at its bounds", [](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 0, 1});
}

void add_edges_of_domains(Rows& rows) {
  rows.add("x^1.5 near 0", [](const Tensor& x) { return pow(x, 1.5); }, {1e-4, 1e-6, 1e-9, 1});
  rows.add("x^1.5 at 0", [](const Tensor& x) { return pow(x, 1.5); }, {0, 1});
  rows.add("sqrt near 0", [](const Tensor& x) { return sqrt(x); }, {1e-8, 1e-4, 1});
  rows.add("log near 0", [](const Tensor& x) { return log(x); }, {1e-8, 0.003, 100});
  rows.add("exp at 700", [](const Tensor& x) { return exp(x); }, {700, 699.5});
}

void add_scales(Rows& rows) {
  for (const double scale : {1e-8, 1e-4, 1e4, 1e8}) {
    const std::string at = fmt::format(" at scale {:.0e}", scale);
    rows.add("x^3" + at, [](const Tensor& x) { return x * x * x; }, {0.7 * scale, -1.3 * scale});
    rows.add("tanh(x / scale)" + at, [=](const Tensor& x) { return tanh(x / scale); },
             {0.7 * scale, -1.3 * scale});
    rows.add("x log x" + at, [](const Tensor& x) { return x * log(x); }, {0.7 * scale, 1.3 * scale});
  }
  rows.add("sin(1e3 x)", [](const Tensor& x) { return wave(x, 1e3, false); }, {0.3, -0.001, 0.0002, 2});
  rows.add("tanh(1e3 x)", [](const Tensor& x) { return tanh(1e3 * x); }, {0.0003, -0.0011, 0.0007});
}

void add_reductions(Rows& rows) {
  const auto softmax_of = [](const Tensor& x) { return softmax(x); };
  rows.add("softmax at logits of 1e8", softmax_of, {1e8, 1e8 + 1, 1e8 - 1});
  rows.add("saturated softmax", softmax_of, {0, 30, -4, 31});
  rows.add("logsumexp at 1e4", [](const Tensor& x) { return logsumexp(x, 0); }, {1e4, 1e4 - 1, -1e4});
  rows.add("sigmoid at 40", sigmoid, {40, -40, 1});
  rows.add("exp(x) exp(-x) - 1, which is nothing but rounding",
           [](const Tensor& x) { return exp(x) * exp(-x) - 1; }, {0.3, -1.7, 0.9},
           {.compare_f32 = false, .expect_zero = {"x"}});
  const auto normalised = [](const Inputs& in) { return layer_norm(in["x"]); };
  rows.add("layer_norm of nearly constant rows", normalised,
           {{"x", tensor({{1, 1 + 1e-6, 1 - 2e-6, 1 + 3e-6}, {5, 5 + 1e-9, 5, 5}}, f64)}});
  rows.add("layer_norm of constant rows", normalised, {{"x", tensor({{5, 5, 5}, {0, 0, 0}}, f64)}});
  rows.add("layer_norm at 40000", normalised, {{"x", tensor({40000, 40001, 40002, 40003}, f64)}});
  rows.add("cross entropy of a confident model",
           [](const Inputs& in) {
             return cross_entropy(in["x"], Indices{0, 2}).loss;
           },
           {{"x", tensor({{8, 0, -3}, {-8, 1, 9}}, f64)}});
}

// Layers whose parameters and inputs are f32, as in training.
void add_layers(Rows& rows) {
  Rng rng(11);
  const Tensor x = randn({7, 5}, rng), Wq = randn({5, 3}, rng), Wk = randn({5, 3}, rng),
               Wv = randn({5, 3}, rng), bk = randn({3}, rng), Wo = randn({3, 5}, rng);
  rows.add("attention's key bias",
           [](const Inputs& in) {
             const Tensor q = matmul(in["x"], in["Wq"]), k = matmul(in["x"], in["Wk"]) + in["bk"];
             return matmul(softmax(matmul(q, transpose(k))), in["x"]);
           },
           {{"x", x}, {"Wq", Wq}, {"Wk", Wk}, {"bk", bk}}, {.expect_zero = {"bk"}});
  rows.add(
      "self_attention in f32",
      [](const Inputs& in) { return self_attention(in["x"], in["Wq"], in["Wk"], in["Wv"], in["Wo"]).output; },
      {{"x", x}, {"Wq", Wq}, {"Wk", Wk}, {"Wv", Wv}, {"Wo", Wo}});
  rows.add("linear, gelu and layer_norm in f32",
           [](const Inputs& in) { return layer_norm(gelu(linear(in["x"], in["W"])), in["gain"]); },
           {{"x", x}, {"W", Wq}, {"gain", bk}});
}

}  // namespace

std::vector<GradcheckRow> hard_functions() {
  Rows rows;
  add_kinks(rows);
  add_edges_of_domains(rows);
  add_scales(rows);
  add_reductions(rows);
  add_layers(rows);
  return rows.take();
}

}  // namespace fovea
