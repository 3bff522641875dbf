// The time that the graph itself takes for one op, forward and backward, beside that of malloc and free in
// the same run.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "fovea/fovea.h"

namespace {

constexpr int chain_length = 1000;

benchmark::Counter per_item(int64_t items) {
  return benchmark::Counter(static_cast<double>(items),
                            benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// A chain of additions of single elements, whose own cost is next to nothing.
void recorded_add(benchmark::State& state) {
  fovea::Tensor x = fovea::scalar(1);
  x.set_requires_grad();
  const fovea::Tensor step = fovea::scalar(0.5);
  for (auto _ : state) {
    fovea::Tensor y = x;
    for (int i = 0; i < chain_length; ++i) y = y + step;
    fovea::backward(y);
    benchmark::DoNotOptimize(x.grad());
  }
  state.counters["per op"] = per_item(chain_length);
}

void malloc_and_free(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < chain_length; ++i) {
      void* block = std::malloc(256);
      benchmark::DoNotOptimize(block);
      std::free(block);
    }
  }
  state.counters["per op"] = per_item(chain_length);
}

BENCHMARK(recorded_add);
BENCHMARK(malloc_and_free);

}  // namespace

BENCHMARK_MAIN();
