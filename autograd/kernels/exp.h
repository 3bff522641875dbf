#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "autograd/kernels/lanes.h"

// exp of a block, and the parts of exp of one lane that other functions are built on. Compilers turn this
// plain code into vector instructions. Eigen 3.4's exp is wrong where the result is infinite, zero or
// denormal, and to find and correct such results takes longer than this.
namespace fovea::kernels {

namespace detail {

template <class T>
struct ExpNumbers;

// `series` are the coefficients of (exp(r) - 1 - r) / r^2, a Chebyshev interpolant for |r| <= ln 2 / 2, with
// errors of exp below 2^-26.9 and 2^-62.
template <>
struct ExpNumbers<float> {
  static constexpr float low = -104, high = 89;                              // exp is 0 below, infinite above
  static constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;  // ln 2 in two parts
  static constexpr float shift = 12582912;                                   // 1.5 * 2^23
  static constexpr int mantissa = 23, bias = 127;
  static constexpr std::array series{0.5f, 0.166665733819f, 0.0416665501103f, 0.00836377387441f,
                                     0.0013926926614f};
};

template <>
struct ExpNumbers<double> {
  static constexpr double low = -746, high = 710;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr double shift = 6755399441055744;  // 1.5 * 2^52
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr std::array series{
      0.5,
      0.166666666666666714,
      0.0416666666666666701,
      0.0083333333333255447,
      0.00138888888888833267,
      0.000198412698768643549,
      0.0000248015873270071867,
      2.75572528335169097e-6,
      2.75572718102197996e-7,
      2.51062747335732947e-8,
      2.09154422977801152e-9,
  };
};

// series[0] + series[1] r + ... by Horner's rule. It is a recursion of templates, since compilers would not
// vectorise the code around a loop.
template <std::size_t i = 0, class T, class C, std::size_t n>
constexpr T polynomial(T r, const std::array<C, n>& series) {
  if constexpr (i + 1 == n) {
    return series[i];
  } else {
    return polynomial<i + 1>(r, series) * r + series[i];
  }
}

template <class T>
using IntegerOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// 2^n, for n that gives a normal number.
template <class T>
constexpr T power_of_2(IntegerOf<T> n) {
  using Unsigned = std::make_unsigned_t<IntegerOf<T>>;
  return std::bit_cast<T>(static_cast<Unsigned>(n + ExpNumbers<T>::bias) << ExpNumbers<T>::mantissa);
}

// Whether the processor computes a b + c with a single rounding, at no cost.
#ifdef FP_FAST_FMAF
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

// a b + c, rounded once where the processor can. Compilers may or may not do so to the plain expression.
template <class T>
constexpr T multiply_add(T a, T b, T c) {
  if constexpr (has_fma) return std::fma(a, b, c);
  return a * b + c;
}

/// y 2^n, for results of type Result, where y is not far from 1.
template <class Result, class T>
constexpr T scaled(T y, IntegerOf<T> n) {
  if constexpr (sizeof(Result) < sizeof(T)) {
    return y * power_of_2<T>(n);  // what is normal or 0 in a narrower type is normal in this one
  } else {
    // The power is multiplied in as two, neither of which overflows; a denormal result is rounded once.
    const IntegerOf<T> half = static_cast<std::int32_t>(n) >> 1;
    return y * power_of_2<T>(half) * power_of_2<T>(n - half);
  }
}

/// exp(x) as (1 + fraction) 2^exponent, where the fraction is between -0.3 and 0.42. `Result` is the type to
/// which the caller rounds its result.
///
/// A caller that multiplies exp(x) by another factor does so before the power of 2 is multiplied in: that
/// saves a rounding, and keeps the digits of a product that is a normal number where exp(x) is denormal.
template <class Result, class T>
struct ExpParts {
  T fraction;
  T fraction_low;  // the next digits of the fraction
  IntegerOf<T> exponent;

  /// c exp(x).
  constexpr T times(T c) const { return scaled<Result>(multiply_add(c, fraction, c), exponent); }
};

// The upper half of a number's bits, 12 or 26. The product of two such numbers is exact.
template <class T>
constexpr T upper_half(T x) {
  using Bits = std::make_unsigned_t<IntegerOf<T>>;
  constexpr Bits lower = (Bits{1} << (sizeof(T) == 4 ? 12 : 27)) - 1;
  return std::bit_cast<T>(std::bit_cast<Bits>(x) & ~lower);
}

// What was lost when a + b was rounded to `sum` (Knuth's two-sum).
constexpr double lost_in_sum(double a, double b, double sum) {
  const double from_b = sum - a;
  return (a - (sum - from_b)) + (b - from_b);
}

/// The parts of exp(x + low) for a number in two parts, of which `low` is below the last bits of x.
template <class Result, class T>
constexpr ExpParts<Result, T> exp_parts(T x, T low = 0) {
  using Numbers = ExpNumbers<T>;
  // exp(x) = 2^k exp(r), with x = k ln 2 + r and |r| <= ln 2 / 2. Adding the large number `shift` to x / ln 2
  // rounds it to the integer k, and leaves k in the lowest bits.
  const T shifted = x * T(1.4426950408889634) + Numbers::shift;
  const T k = shifted - Numbers::shift;
  const IntegerOf<T> exponent =
      std::bit_cast<IntegerOf<T>>(shifted) - std::bit_cast<IntegerOf<T>>(Numbers::shift);
  constexpr auto series = ExpNumbers<Result>::series;
  if constexpr (sizeof(Result) < sizeof(T)) {
    const T r = (x - k * T(std::numbers::ln2)) + low;
    return {polynomial(r, series) * r * r + r, 0, exponent};
  } else {
    const T high = x - k * Numbers::ln2_high;  // exact
    const T rest = low - k * Numbers::ln2_low;
    const T r = high + rest;
    const T small = polynomial(r, series) * r * r + rest;
    const T fraction = high + small;
    return {fraction, small - (fraction - high), exponent};
  }
}

}  // namespace detail

/// exp of every element, with an error below 1 ulp everywhere, infinite, zero and denormal results included.
template <class T>
Block<T> exp(Block<T> x) {
  using Numbers = detail::ExpNumbers<T>;
  for_each_lane([&](int i) {
    // A NaN fails both comparisons and passes through. Results of 0 are chosen, not computed: arithmetic that
    // underflows is slow on many processors.
    const bool vanishes = x[i] < Numbers::low;
    const T above = vanishes ? T(0) : x[i];
    const T inside = above > Numbers::high ? Numbers::high : above;
    x[i] = vanishes ? T(0) : detail::exp_parts<T>(inside).times(1);
  });
  return x;
}

}  // namespace fovea::kernels
