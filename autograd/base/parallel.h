#pragma once

#include <algorithm>
#include <cstdint>

namespace fovea::kernels {

/// How many elements of elementwise work one thread takes at a time: enough, some tens of microseconds, that
/// waking another thread pays, and that waiting for one on a busy machine costs little beside it.
inline constexpr std::int64_t elements_per_chunk = 1 << 17;

namespace detail {
using ChunkFunction = void (*)(const void* context, std::int64_t chunk);
/// Calls function(context, c) for every c in [0, chunks), on several threads.
void run_chunks(std::int64_t chunks, ChunkFunction function, const void* context);
}  // namespace detail

/// Calls f(begin, end) for chunks of [0, n) with `chunk` elements each (the last may be shorter), on up to
/// `threads()` threads. The chunks depend on n and `chunk` alone, so results that are written per chunk, or
/// added up in the order of chunks, are the same for any number of threads. If calls throw, the exception of
/// the earliest chunk is rethrown. Inside a chunk, further calls run on the thread of the chunk.
template <class F>
void parallel_for(std::int64_t n, std::int64_t chunk, const F& f) {
  if (n <= 0) return;
  if (n <= chunk) {
    f(std::int64_t{0}, n);
    return;
  }
  const auto run_chunk = [&](std::int64_t c) { f(c * chunk, std::min(n, (c + 1) * chunk)); };
  detail::run_chunks(
      (n + chunk - 1) / chunk,
      [](const void* context, std::int64_t c) { (*static_cast<const decltype(run_chunk)*>(context))(c); },
      &run_chunk);
}

}  // namespace fovea::kernels
