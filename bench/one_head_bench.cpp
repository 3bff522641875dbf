// The time of a training step, and of a forward pass, of the model that `./run train` trains: B = 64
// sentences of T = 16 tokens, one head, C = D = 32, V = 70, AdamW. peers/one_head.py does the same step in
// PyTorch.

#include <benchmark/benchmark.h>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

constexpr std::int64_t batch = 64, time_steps = 16, channels = 32, vocabulary = 70;

Indices random_ids(Rng& rng) {
  return Indices({batch, time_steps}, [&](std::int64_t* out) {
    for (std::int64_t i = 0; i < batch * time_steps; ++i) out[i] = rng.uniform_int(vocabulary);
  });
}

void training_step(benchmark::State& state) {
  Rng rng(1);
  const OneHeadModel model(vocabulary, channels, rng);
  AdamW optimizer(named_parameters(model));
  const Indices ids = random_ids(rng), targets = random_ids(rng);
  for (auto _ : state) {
    backward(cross_entropy(model(ids), targets).loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  state.SetItemsProcessed(state.iterations() * batch * time_steps);
}

void forward(benchmark::State& state) {
  Rng rng(1);
  const OneHeadModel model(vocabulary, channels, rng);
  const Indices ids = random_ids(rng);
  const NoGrad fixed;
  for (auto _ : state) benchmark::DoNotOptimize(model(ids));
  state.SetItemsProcessed(state.iterations() * batch * time_steps);
}

BENCHMARK(training_step)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(forward)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
