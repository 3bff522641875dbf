#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "autograd/ops/reference.h"
#include "fovea/fovea.h"

// The time of attention, forward and backward, in f32: one sequence of T tokens, four heads of size 32. The
// argument is T. peers/attention.py does the same work in PyTorch.
//
// Each counter but MiB is the time divided by that of other work, measured in turns with it in the same run:
//   MiB           the peak of memory, without inputs, output and gradients
//   of_half       the same work for T / 2: 4 where time grows as T^2
//   of_unmasked   the same work without the causal mask
//   of_reference  the same work by the reference, which is made of ops
namespace {

using namespace fovea;

constexpr std::int64_t heads = 4, head_size = 32;

using Implementation = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const AttentionOptions&);

struct Work {
  Implementation attention;
  AttentionOptions options;
  Tensor q, k, v, dy;

  Work(Implementation implementation, const Mask& mask, std::int64_t time)
      : attention(implementation), options{.mask = mask} {
    Rng rng(1);
    const auto draw = [&] { return randn({1, heads, time, head_size}, rng); };
    for (Tensor* x : {&q, &k, &v}) *x = draw().set_requires_grad();
    dy = draw();
  }
  void pass() const {
    benchmark::DoNotOptimize(grad({attention(q, k, v, options)}, {q, k, v}, {.gradients = {dy}}));
  }
  double seconds() const {
    const auto begin = std::chrono::steady_clock::now();
    pass();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  double working_mib() const {
    const std::int64_t before = memory().live_bytes;
    reset_peak_memory();
    pass();
    const std::int64_t results = 4 * q.numel() * 4;  // the output and three gradients
    return static_cast<double>(memory().peak_bytes - before - results) / (1 << 20);
  }
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(benchmark::State& state, const Work& work, const char* ratio, const Work& other) {
  state.counters["MiB"] = work.working_mib();
  other.pass();
  std::vector<double> times, other_times;
  for (auto _ : state) {
    times.push_back(work.seconds());
    other_times.push_back(other.seconds());
    state.SetIterationTime(times.back());
  }
  state.counters[ratio] = median(times) / median(other_times);
}

void causal(benchmark::State& state) {
  const std::int64_t time = state.range(0);
  compare(state, {attention, Mask::causal(), time}, "of_half", {attention, Mask::causal(), time / 2});
}
void causal_and_unmasked(benchmark::State& state) {
  const std::int64_t time = state.range(0);
  compare(state, {attention, Mask::causal(), time}, "of_unmasked", {attention, {}, time});
}
void causal_and_reference(benchmark::State& state) {
  const std::int64_t time = state.range(0);
  compare(state, {attention, Mask::causal(), time}, "of_reference",
          {reference::attention, Mask::causal(), time});
}

BENCHMARK(causal)->RangeMultiplier(2)->Range(1024, 8192)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(causal_and_unmasked)->Arg(1024)->Arg(8192)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(causal_and_reference)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
