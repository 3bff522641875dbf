#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "autograd/kernels/lanes.h"

namespace fovea::kernels {

/// Which elements dropout keeps: y = x factor, where factor is 0 with probability p and else 1 / (1 - p).
///
/// The mask is a function of the key, the row and the position in the row. So it is never stored, and is the
/// same in the forward and the backward pass, and on every thread.
///
/// The elements of a row are taken in groups of 64; each row begins a new group. For a group, 16 counters of
/// the random generator Philox (Salmon et al. 2011), one in each lane, give 4 words each: word w of lane l
/// decides on element 16 w + l.
class DropoutMask {
 public:
  static constexpr std::int64_t group_size = 4 * block_size;

  /// The factors of the elements of one group.
  template <class T>
  using Factors = std::array<Block<T>, 4>;

  /// p must be in [0, 1]; it is rounded to a multiple of 2^-32.
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

  // Computes philox(key, counter + i) in lane i. `counter` is a multiple of 16, so all lanes have the same
  // upper word.
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
  std::uint64_t threshold_;  // an element is dropped if its word is below this
  double factor_;
  std::int64_t groups_per_row_;
};

}  // namespace fovea::kernels
