// Gradients in every form: of leaves and of parameters, as products and matrices, frozen, clipped and looked
// for NaN. docs/gradients.md shows these lines and what they print.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "expect.h"
#include "fovea/fovea.h"

using namespace fovea;

namespace {

struct Network {
  Linear in, out;

  explicit Network(Rng& rng) : in(3, 5, rng), out(5, 2, rng) {}

  Tensor operator()(const Tensor& x) const { return out(tanh(in(x))); }  // (..., 3) -> (..., 2)

  static void visit(const Network& self, Visitor& v) {
    v("in", self.in);
    v("out", self.out);
  }
};

void backward_and_grad() {
  // [backward]
  const Tensor w = parameter(tensor({1, 2, 3}));  // a leaf: set_requires_grad() makes one in place
  backward(sum(w * w));
  backward(sum(w));  // adds to what is there
  fmt::print("{}\n\n", w.grad());
  // [backward]
  expect(w.grad().to_vector() == std::vector<double>{3, 5, 7}, "backward adds up");

  // [grad]
  const Tensor h = tanh(w);
  const Tensor loss = sum(h * h);
  const std::vector<Tensor> gradients = grad({loss}, {w, h});  // of a leaf, and of a value on the way
  // [grad]
  expect(distance(gradients[1], 2.0 * h) == 0, "grad of a value on the way");
  expect(w.grad().at({0}) == 3, "grad leaves grad() alone");

  // [cotangent]
  backward(w * w, {.gradient = tensor({1, 0, 0})});  // of an output with several elements
  // [cotangent]
  expect(w.grad().to_vector() == std::vector<double>{5, 5, 7}, "backward from a cotangent");
}

void twice() {
  const Tensor x = parameter(tensor({1, 2}));
  // [create_graph]
  const Tensor slope = grad({sum(pow(x, 3))}, {x}, {.create_graph = true})[0];  // 3 x^2
  const Tensor curvature = grad({sum(slope)}, {x})[0];                          // 6 x
  const Tensor penalty = sum(slope * slope);  // a loss may contain gradients
  // [create_graph]
  expect(curvature.to_vector() == std::vector<double>{6, 12} && penalty.requires_grad(), "create_graph");

  // [retain_graph]
  const Tensor y = sum(exp(x));
  const Tensor once = grad({y}, {x}, {.retain_graph = true})[0];  // keeps the graph for another pass
  const Tensor again = grad({y}, {x})[0];                         // frees it
  // [retain_graph]
  expect(distance(once, again) == 0, "retain_graph");
}

void modes(const Network& model, const Tensor& x) {
  // [no_grad]
  const Tensor constant = model(x).detach();  // gradients stop here
  Tensor y;
  {
    const NoGrad no_grad;  // to the end of this scope
    y = model(x);          // y.requires_grad() is false
  }
  // [no_grad]
  expect(!constant.requires_grad() && !y.requires_grad(), "nothing is recorded");

  // [train_mode]
  const Dropout drop(0.5);
  const TrainMode training(/*seed=*/7);  // PyTorch's model.train(), to the end of the scope
  const Tensor dropped = drop(x);
  Tensor same;
  {
    const EvalMode evaluation;  // model.eval(), to the end of this scope
    same = drop(x);             // x itself
  }
  // [train_mode]
  expect(all(same == x) && !all(dropped == x), "dropout");
}

void products() {
  // [derivatives]
  const auto f = [](const Tensor& x) { return stack({sum(x * x), sum(exp(x))}, 0); };  // (3,) -> (2,)
  const auto g = [](const Tensor& x) { return sum(pow(x, 3)); };                       // (3,) -> ()
  const Tensor x = tensor({1, 2, 3}), v = tensor({1, 0, -1}), u = tensor({1, 2});

  const Tensor J = jacobian(f, x);  // (2, 3): J[i, j] = d f_i / d x_j
  const Tensor uJ = vjp(f, x, u);   // (3,): one backward pass
  const Tensor Jv = jvp(f, x, v);   // (2,): two backward passes
  const Tensor H = hessian(g, x);   // (3, 3): of a function with one output element
  const Tensor Hv = hvp(g, x, v);   // (3,): without the matrix
  fmt::print("{}\n{}\n\n", H, Hv);
  // [derivatives]
  expect(distance(uJ, matmul(u, J)) < 1e-4 && distance(Jv, matmul(J, v)) < 1e-4, "products with J");
  expect(distance(Hv, matmul(H, v)) < 1e-4, "products with H");
}

// [flat]
// All elements of some tensors as one vector, in the order of the list.
Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> pieces;
  for (const Tensor& x : tensors) pieces.push_back(reshape(x, {-1}));
  return concat(pieces, 0);
}

std::vector<Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> tensors;
  for (const NamedTensor& p : parameters) tensors.push_back(p.tensor);
  return tensors;
}
// [flat]

// [unflat]
// The opposite: the elements of a vector, in the shapes of the parameters.
std::vector<Tensor> unflat(const Tensor& vector, const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> tensors;
  std::int64_t begin = 0;
  for (const auto& [name, p] : parameters) {
    tensors.push_back(reshape(slice(vector, 0, begin, begin + p.numel()), p.shape()));
    begin += p.numel();
  }
  return tensors;
}
// [unflat]

void of_all_parameters(const Network& model, const Tensor& x, const Tensor& target, Rng& rng) {
  // [parameter_gradient]
  const std::vector<NamedTensor> parameters = named_parameters(model);
  const Tensor loss = mean_squared_error(model(x), target);
  const Tensor gradient = flat(grad({loss}, tensors_of(parameters)));  // (P,): P = parameter_count(model)
  // [parameter_gradient]
  expect(gradient.shape() == Shape{parameter_count(model)}, "one vector");

  const Tensor vector = randn({parameter_count(model)}, rng);
  // [model_hvp]
  const auto hvp_of_model = [&](const Tensor& v) {
    const Tensor value = mean_squared_error(model(x), target);
    const std::vector<Tensor> slopes = grad({value}, tensors_of(parameters), {.create_graph = true});
    return flat(grad(slopes, tensors_of(parameters), {.gradients = unflat(v, parameters)}));  // (P,)
  };
  // [model_hvp]

  // [function_of_a_weight]
  const Function loss_of_weight = [&](const Tensor& W) {
    Network moved = model;  // shares all tensors with the model
    moved.out.W = W;        // but this one
    return mean_squared_error(moved(x), target);
  };
  const Tensor H = hessian(loss_of_weight, model.out.W);  // (5, 2, 5, 2)
  // [function_of_a_weight]

  // H is the block of out.W, which comes after in.W (3, 5) and in.b (5,), in the Hessian of all parameters.
  const std::int64_t begin = 3 * 5 + 5, size = 5 * 2;
  const Tensor ahead = zeros({begin}), within = randn({size}, rng), behind = zeros({2});
  const Tensor product = slice(hvp_of_model(concat({ahead, within, behind}, 0)), 0, begin, begin + size);
  expect(distance(product, matmul(reshape(H, {size, size}), within)) < 1e-5, "hvp of the model");
  expect(hvp_of_model(vector).shape() == vector.shape(), "hvp of all parameters");
}

void per_sample(const Network& model, const Tensor& x, const Tensor& target) {
  const std::vector<NamedTensor> parameters = named_parameters(model);
  // [per_sample]
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const Tensor loss = mean_squared_error(model(slice(x, 0, i, i + 1)), slice(target, 0, i, i + 1));
    rows.push_back(flat(grad({loss}, tensors_of(parameters))));
  }
  const Tensor per_sample = stack(rows, 0);                     // (B, P)
  const Tensor norms = sqrt(sum(per_sample * per_sample, -1));  // (B,)
  // [per_sample]
  const Tensor whole = flat(grad({mean_squared_error(model(x), target)}, tensors_of(parameters)));
  expect(distance(mean(per_sample, 0), whole) < 1e-6 && norms.size(0) == x.size(0), "per-sample gradients");
}

void freezing(const Tensor& x, const Tensor& target, Rng& rng) {
  const Network model(rng);
  // [freeze]
  freeze(model.in);  // a layer; a single tensor: model.in.W.set_requires_grad(false)
  AdamW optimizer(trainable_parameters(model), {.learning_rate = 1e-2});
  // [freeze]
  const std::vector<double> frozen = model.in.W.to_vector(), learned = model.out.W.to_vector();
  // [clip]
  backward(mean_squared_error(model(x), target));
  const double norm = clip_gradients(optimizer.parameters(), /*max_norm=*/1.0);  // the norm before clipping
  for (const auto& [name, p] : optimizer.parameters()) p.set_grad(clamp(p.grad(), -0.1, 0.1));  // by value
  optimizer.step();
  optimizer.zero_grad();
  // [clip]
  expect(norm > 0 && model.in.W.to_vector() == frozen && model.out.W.to_vector() != learned, "freezing");

  // [unfreeze]
  for (NamedTensor& p : named_parameters(model.in)) p.tensor.set_requires_grad();
  AdamW of_all(trainable_parameters(model), {.learning_rate = 1e-3});
  // [unfreeze]
  expect(of_all.parameters().size() == 4, "unfreezing");
}

// [frozen_layer]
struct Probe {
  Network body;  // stays as it was trained
  Linear head;

  Probe(const Network& trained, Rng& rng) : body(clone(trained)), head(2, 7, rng) { freeze(body); }

  Tensor operator()(const Tensor& x) const { return head(body(x)); }

  static void visit(const Probe& self, Visitor& v) {
    v.frozen("body", self.body);  // saved and loaded, but not among the named parameters
    v("head", self.head);
  }
};
// [frozen_layer]

void anomaly() {
  // [anomaly]
  const Anomaly anomaly;  // slower: every value and gradient is looked at
  try {
    const Tensor x = parameter(tensor({2, -1}));
    backward(sum(exp(x) * log(x)));
  } catch (const NonFiniteError& error) {
    fmt::print("{}\n\n", error.what());
  }
  // [anomaly]
}

void recomputing(const Network& model, const Tensor& x) {
  // [recompute]
  const Tensor y = recompute(model, x);  // keeps x alone, and computes the rest again in backward
  const Tensor z = recompute([](const Tensor& h) { return exp(tanh(h)); }, y);  // a function likewise
  // [recompute]
  expect(distance(z, exp(tanh(model(x)))) == 0, "recompute");
}

void graph() {
  // [to_dot]
  const Tensor w = parameter(ones({3}));
  fmt::print("{}\n", to_dot(sum(w * w)));
  // [to_dot]
}

}  // namespace

int main() {
  graph();  // first: nodes are numbered as they are made
  Rng rng(1);
  const Network model(rng);
  const Tensor x = randn({7, 3}, rng), target = randn({7, 2}, rng);
  backward_and_grad();
  twice();
  modes(model, x);
  products();
  of_all_parameters(model, x, target, rng);
  per_sample(model, x, target);
  freezing(x, target, rng);
  expect(named_parameters(Probe(model, rng)).size() == 2, "a frozen layer");
  anomaly();
  recomputing(model, x);
  return failures == 0 ? 0 : 1;
}
