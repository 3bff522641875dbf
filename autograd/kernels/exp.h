#pragma once

#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "autograd/kernels/lanes.h"

namespace fovea::kernels {

namespace detail {

template <class T>
struct ExpNumbers;

template <>
struct ExpNumbers<float> {
  static constexpr float low = -104, high = 89;                              // exp is 0 below, infinite above
  static constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;  // ln 2 in two parts
  static constexpr float shift = 12582912;                                   // 1.5 * 2^23
  static constexpr int mantissa = 23, bias = 127;
  static constexpr int degree = 7;
};

template <>
struct ExpNumbers<double> {
  static constexpr double low = -746, high = 710;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr double shift = 6755399441055744;  // 1.5 * 2^52
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr int degree = 13;
};

// The coefficients 1 / 2!, ..., 1 / n! of the Taylor series.
template <class T, int n>
constexpr auto inverse_factorials() {
  std::array<T, n - 1> result{};
  double factorial = 1;
  for (int k = 2; k <= n; ++k) result[static_cast<std::size_t>(k - 2)] = static_cast<T>(1 / (factorial *= k));
  return result;
}

// series[0] + series[1] r + ... by Horner's rule. It is a recursion of templates, since compilers would not
// vectorise the code around a loop.
template <std::size_t i, class T, std::size_t n>
constexpr T polynomial(T r, const std::array<T, n>& series) {
  if constexpr (i + 1 == n) {
    return series[i];
  } else {
    return polynomial<i + 1>(r, series) * r + series[i];
  }
}

}  // namespace detail

/// exp of every element, with an error of about 1 ulp everywhere, infinite, zero and denormal results
/// included.
///
/// Compilers turn this plain code into vector instructions. Eigen 3.4's exp is wrong for such results, and to
/// find and correct them takes longer than this.
template <class T>
Block<T> exp(Block<T> x) {
  using Numbers = detail::ExpNumbers<T>;
  using Signed = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Unsigned = std::make_unsigned_t<Signed>;
  constexpr auto series = detail::inverse_factorials<T, Numbers::degree>();
  constexpr auto power_of_2 = [](Signed n) {
    return std::bit_cast<T>(static_cast<Unsigned>(n + Numbers::bias) << Numbers::mantissa);
  };
  for_each_lane([&](int i) {
    // A NaN fails both comparisons and passes through. Results of 0 are chosen, not computed: arithmetic that
    // underflows is slow on many processors.
    const bool vanishes = x[i] < Numbers::low;
    const T above = vanishes ? T(0) : x[i];
    const T inside = above > Numbers::high ? Numbers::high : above;
    // exp(x) = 2^k exp(r), with x = k ln 2 + r and |r| <= ln 2 / 2. Adding the large number `shift` to x / ln
    // 2 rounds it to the integer k, and leaves k in the lowest bits.
    const T shifted = inside * T(1.4426950408889634) + Numbers::shift;
    const T k = shifted - Numbers::shift;
    const T r = (inside - k * Numbers::ln2_high) - k * Numbers::ln2_low;
    const T exp_r = detail::polynomial<0>(r, series) * r * r + r + 1;
    // 2^k is multiplied in as two powers, neither of which overflows; a denormal result is rounded once.
    const Signed exponent = std::bit_cast<Signed>(shifted) - std::bit_cast<Signed>(Numbers::shift);
    const Signed half = static_cast<std::int32_t>(exponent) >> 1;
    x[i] = vanishes ? T(0) : exp_r * power_of_2(half) * power_of_2(exponent - half);
  });
  return x;
}

}  // namespace fovea::kernels
