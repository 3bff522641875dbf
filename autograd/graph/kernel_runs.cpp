#include "autograd/graph/kernel_runs.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace fovea {
namespace {

constexpr std::size_t most_kernels = 64;

std::atomic<std::int64_t>& runs(Kernel kernel) {
  static std::array<std::atomic<std::int64_t>, most_kernels> counters{};
  return counters.at(static_cast<std::size_t>(kernel));
}

}  // namespace

std::int64_t runs_of(Kernel kernel) { return runs(kernel).load(std::memory_order_relaxed); }

void detail::count_run(Kernel kernel) { runs(kernel).fetch_add(1, std::memory_order_relaxed); }

}  // namespace fovea
