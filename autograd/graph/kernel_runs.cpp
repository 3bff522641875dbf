#include "autograd/graph/kernel_runs.h"

#include <utility>

#include "autograd/base/fail.h"

namespace fovea {
namespace detail {

// Counters are made before main, one thread at a time.
struct KernelRunsList {
  static constinit inline KernelRuns* first = nullptr;

  static std::int64_t runs_of(std::string_view kernel) {
    for (const KernelRuns* at = first; at; at = at->next_) {
      if (at->kernel_ == kernel) return at->runs_.load(std::memory_order_relaxed);
    }
    fail<ValueError>("[runs_of] no kernel is called '{}'", kernel);
  }
};

KernelRuns::KernelRuns(const char* kernel)
    : kernel_(kernel), next_(std::exchange(KernelRunsList::first, this)) {}

}  // namespace detail

std::int64_t runs_of(std::string_view kernel) { return detail::KernelRunsList::runs_of(kernel); }

}  // namespace fovea
