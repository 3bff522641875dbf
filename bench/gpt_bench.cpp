// The time of a training step of the Gpt that `fovea train --text FILE` trains, on one thread and on two. The
// settings are nanoGPT's for a CPU: B = 12, T = 64, 4 layers, H = 4, C = 128, V = 65, AdamW, and gradients
// clipped at 1. peers/gpt.py does the same work in PyTorch.

#include <benchmark/benchmark.h>

#include <algorithm>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

constexpr std::int64_t batch = 12, context = 64, vocabulary = 65;

Indices random_ids(Rng& rng) {
  return Indices({batch, context}, [&](std::int64_t* out) {
    std::generate_n(out, batch * context, [&] { return rng.uniform_int(vocabulary); });
  });
}

void training_step(benchmark::State& state) {
  set_threads(static_cast<int>(state.range(0)));
  const Recipe recipe;
  GptConfig config = recipe.model;
  config.vocabulary = vocabulary;
  config.context = context;
  config.positions = Positions::learned;
  Rng rng(1);
  const Gpt model(config, rng);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(recipe, named_parameters(model));
  const Indices ids = random_ids(rng), targets = random_ids(rng);
  for (auto _ : state) {
    backward(cross_entropy(model(ids), targets).loss);
    clip_gradients(optimizer->parameters(), recipe.clip);
    optimizer->step();
    optimizer->zero_grad();
  }
  state.SetItemsProcessed(state.iterations() * batch * context);
}

BENCHMARK(training_step)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
