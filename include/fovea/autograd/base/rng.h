#pragma once

#include <array>
#include <cstdint>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// A counter-based random number generator: Philox4x32-10 (Salmon et al. 2011).
///
/// Draw n is a function of (seed, n), so a stream can be resumed from a few words of state, and any element
/// of an array can be drawn by any thread. Values are the same on every platform.
/// Threads: one Rng belongs to one thread at a time.
class FOVEA_API Rng {
 public:
  /// Everything that is needed to resume a stream.
  struct State {
    std::uint64_t seed = 0;
    std::uint64_t position = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Rng(std::uint64_t seed) : state_{seed, 0} {}
  explicit Rng(State state) : state_(state) {}

  /// 64 random bits.
  std::uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();
  /// A draw from N(0, 1), exact to about 1e-15 (Box-Muller).
  double normal();
  /// Uniform in {0, ..., n - 1}, without bias. Throws: ValueError if n < 1.
  std::int64_t uniform_int(std::int64_t n);

  /// An independent generator, determined by this one's state; this one moves on by one draw.
  Rng split();

  State state() const { return state_; }

 private:
  State state_;
};

/// One block of Philox4x32-10: 128 random bits for a key and a counter.
FOVEA_API std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter);

}  // namespace fovea
