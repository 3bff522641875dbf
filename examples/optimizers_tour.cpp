// A small regression trained with groups of parameters, a schedule and averaged weights, and with Muon.

#include <fmt/core.h>

#include "fovea/fovea.h"

using namespace fovea;

// [model]
struct Network {
  Linear in;
  LayerNorm norm;
  Linear out;

  explicit Network(Rng& rng) : in(3, 16, rng), norm(16), out(16, 2, rng) {}

  Tensor operator()(const Tensor& x) const { return out(tanh(norm(in(x)))); }

  static void visit(const Network& self, Visitor& v) {
    v("in", self.in);
    v("norm", self.norm);
    v("out", self.out);
  }
};
// [model]

Tensor loss_of(const Network& network, const Network& truth, const Tensor& x) {
  return mean_squared_error(network(x), truth(x).detach());
}

// Trains a network with Muon, and returns its loss on unseen inputs.
double train_with_muon(const Network& truth, const Tensor& unseen, std::int64_t steps, Rng& rng) {
  // [muon]
  const Network network(rng);
  const auto inner_matrices = [](const NamedTensor& p) {
    return is_matrix(p) && !name_matches("out.*", p.name);
  };
  Muon muon(named_parameters(network), {.learning_rate = 0.02, .matrices = inner_matrices});
  // [muon]
  for (std::int64_t step = 0; step < steps; ++step) {
    backward(loss_of(network, truth, randn({32, 3}, rng)));
    muon.step();
    muon.zero_grad();
  }
  return loss_of(network, truth, unseen).item();
}

int main() {
  Rng rng(1);
  const Network model(rng);

  // [groups]
  AdamW optimizer(named_parameters(model), {.learning_rate = 1e-2,
                                            .weight_decay = 0.1,
                                            .groups = {{.pattern = "out.*", .lr_scale = 0.5},
                                                       {.pattern = "norm.*", .weight_decay = 0.0}}});
  fmt::print("{}\n", parameter_table(optimizer));
  // [groups]

  const Network truth(rng);
  // [loop]
  constexpr std::int64_t steps = 300;
  const Schedule schedule({.kind = LrSchedule::cosine, .rate = 1e-2, .steps = steps, .warmup = 20});
  Ema average(named_parameters(model), 0.98);
  for (std::int64_t step = 0; step < steps; ++step) {
    backward(loss_of(model, truth, randn({32, 3}, rng)));
    optimizer.set_learning_rate(schedule(step));
    optimizer.step();
    optimizer.zero_grad();
    average.update();
  }
  // [loop]

  const Tensor unseen = randn({256, 3}, rng);
  const double before = loss_of(Network(rng), truth, unseen).item();
  const double own = loss_of(model, truth, unseen).item();
  // [average]
  const Network averaged = clone(model);
  average.copy_to(named_parameters(averaged));
  const double smooth = loss_of(averaged, truth, unseen).item();
  // [average]
  const double with_muon = train_with_muon(truth, unseen, steps, rng);
  fmt::print(stderr,
             "loss on unseen inputs: {:.5f} untrained, {:.5f} trained, {:.5f} averaged, {:.5f} with Muon\n",
             before, own, smooth, with_muon);
  return own < before / 10 && smooth < before / 10 && with_muon < before / 10 ? 0 : 1;
}
