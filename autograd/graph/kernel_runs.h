#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

namespace detail {

/// Counts the runs of a fused kernel, so that a test can tell which path an op took. It stands beside the
/// kernel, at namespace scope:
///
///   detail::KernelRuns softmax_runs("softmax");
class KernelRuns {
 public:
  explicit KernelRuns(const char* kernel);
  KernelRuns(const KernelRuns&) = delete;
  KernelRuns& operator=(const KernelRuns&) = delete;

  void count() noexcept { runs_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend struct KernelRunsList;

  const char* kernel_;
  std::atomic<std::int64_t> runs_{0};
  KernelRuns* next_;  // in the list of all counters
};

}  // namespace detail

/// How often a kernel has run since the program started, over all threads. Throws: ValueError if no kernel
/// has that name.
FOVEA_API std::int64_t runs_of(std::string_view kernel);

}  // namespace fovea
