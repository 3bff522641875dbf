#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "autograd/kernels/lanes.h"

namespace fovea::kernels {

/// Which elements dropout keeps: a function of (key, row, position in the row) and nothing else, so that it
/// is never stored, and the same wherever and by whichever thread it is asked for.
///
/// 16 Philox counters, one a lane, give 4 words each: word w of lane l decides on element 16 w + l of a group
/// of 64. Every row begins a group of its own.
class DropoutMask {
 public:
  static constexpr std::int64_t group_size = 4 * block_size;

  /// What one group's elements are multiplied by: 1 / (1 - p), or 0 where they are dropped.
  template <class T>
  using Factors = std::array<Block<T>, 4>;

  /// p in [0, 1]. The chance is p rounded to a multiple of 2^-32.
  DropoutMask(std::uint64_t key, double p, std::int64_t row_length)
      : key_(key),
        threshold_(static_cast<std::uint64_t>(std::ldexp(p, 32))),
        factor_(p < 1 ? 1 / (1 - p) : 0),
        groups_per_row_((row_length + group_size - 1) / group_size) {}

  template <class T>
  Factors<T> factors(std::int64_t row, std::int64_t group) const {
    const auto counter = static_cast<std::uint64_t>((row * groups_per_row_ + group) * block_size);
    const Words words = philox_lanes(counter);
    const auto factor = static_cast<T>(factor_);
    Factors<T> result;
    for (std::size_t w = 0; w < 4; ++w) {
      for_each_lane([&](int i) { result[w][i] = words[w][i] < threshold_ ? T(0) : factor; });
    }
    return result;
  }

 private:
  using Word = Eigen::Array<std::uint32_t, block_size, 1>;
  using Words = std::array<Word, 4>;

  // philox(key, counter + i) in lane i. Counters begin at a multiple of 16, so the upper word is common.
  Words philox_lanes(std::uint64_t counter) const {
    Words c;
    for_each_lane(
        [&](int i) { c[0][i] = static_cast<std::uint32_t>(counter) + static_cast<std::uint32_t>(i); });
    c[1].setConstant(static_cast<std::uint32_t>(counter >> 32));
    c[2].setZero();
    c[3].setZero();
    auto k0 = static_cast<std::uint32_t>(key_), k1 = static_cast<std::uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      for_each_lane([&](int i) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0][i];
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2][i];
        c[0][i] = static_cast<std::uint32_t>(p1 >> 32) ^ c[1][i] ^ k0;
        c[1][i] = static_cast<std::uint32_t>(p1);
        c[2][i] = static_cast<std::uint32_t>(p0 >> 32) ^ c[3][i] ^ k1;
        c[3][i] = static_cast<std::uint32_t>(p0);
      });
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

  std::uint64_t key_;
  std::uint64_t threshold_;  // words below it drop
  double factor_;
  std::int64_t groups_per_row_;
};

}  // namespace fovea::kernels
