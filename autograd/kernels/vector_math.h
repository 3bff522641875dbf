#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "autograd/kernels/exp.h"

// Elementary functions of a block, in vector instructions. docs/accuracy.md shows their errors.
namespace fovea::kernels {

/// Correctly rounded, as IEEE 754 asks. (Eigen's sqrt is an approximation on processors with AVX.)
template <class T>
Block<T> sqrt(const Block<T>& x) {
  Block<T> y;
  for_each_lane([&](int i) { y[i] = std::sqrt(x[i]); });
  return y;
}

namespace detail {

// (log((1 + s) / (1 - s)) / s - 2) / s^2 as a polynomial in s^2: Chebyshev interpolants for |s| < 0.1716,
// with errors of log below 2^-34 and 2^-63.
template <class T>
inline constexpr std::array log_series{0.6666666655f, 0.4000012221f, 0.2855077863f, 0.2333161447f};
template <>
inline constexpr std::array log_series<double>{
    0.666666666666666665, 0.400000000000008832, 0.28571428570799785,  0.222222223925810451,
    0.181817955475211362, 0.153862447376216666, 0.132686383692668239, 0.130880348509275538};

// An unsigned integer of the size of T.
template <class T>
using BitsOf = std::make_unsigned_t<IntegerOf<T>>;

}  // namespace detail

/// log(m 2^e) = e ln 2 + log(m), with m from sqrt(1/2) to sqrt(2) and f = m - 1. With s = f / (2 + f),
/// log(m) is f - f^2 / 2 + s (f^2 / 2 + R(s^2)), as in FDLIBM. f is exact, and what is rounded is small
/// beside it.
template <class T>
Block<T> log(const Block<T>& x) {
  using Numbers = detail::ExpNumbers<T>;
  using Bits = detail::BitsOf<T>;
  using Limits = std::numeric_limits<T>;
  constexpr Bits one = std::bit_cast<Bits>(T(1)), root_half = std::bit_cast<Bits>(T(0.70710678118654752));
  constexpr T two_to_mantissa = T(Bits{1} << Numbers::mantissa);
  Block<T> y;
  for_each_lane([&](int i) {
    const bool denormal = x[i] < Limits::min();
    const Bits bits = std::bit_cast<Bits>(denormal ? x[i] * two_to_mantissa : x[i]) + (one - root_half);
    const T m = std::bit_cast<T>((bits & ((Bits{1} << Numbers::mantissa) - 1)) + root_half);
    // The exponent, with its bias, becomes the lowest bits of a number between 2^mantissa and twice that.
    const T biased = std::bit_cast<T>((bits >> Numbers::mantissa) | std::bit_cast<Bits>(two_to_mantissa)) -
                     two_to_mantissa;
    const T e = biased - (denormal ? T(Numbers::bias + Numbers::mantissa) : T(Numbers::bias));
    const T f = m - 1, s = f / (2 + f), half_square = f * f / 2;
    const T series = s * s * detail::polynomial(s * s, detail::log_series<T>);
    const T small = half_square - (s * (half_square + series) + e * Numbers::ln2_low);
    const T finite = e * Numbers::ln2_high - (small - f);
    const T positive = x[i] <= Limits::max() ? finite : x[i];  // infinity and NaN
    y[i] = x[i] > 0 || x[i] != x[i] ? positive : x[i] == 0 ? -Limits::infinity() : Limits::quiet_NaN();
  });
  return y;
}

namespace detail {

// (tanh(x) / x - 1) / x^2 as a polynomial in x^2, a Chebyshev interpolant for |x| <= 0.55. Its error is below
// 2^-28 and 2^-63 of tanh(x) / x.
template <class T>
inline constexpr std::array tanh_series{-0.33333332008f, 0.13333113729f, -0.0539094288275f, 0.0213093886644f,
                                        -0.00661022783111f};
template <>
inline constexpr std::array tanh_series<double>{
    -0.33333333333333333,    0.13333333333333312,   -0.053968253968220375,  0.021869488534073908,
    -0.0088632354631468001,  0.0035921267699626347, -0.0014558190971513512, 0.0005899052969492733,
    -0.00023847272480152521, 9.455133052924858e-5,  -3.3720801120463164e-5, 7.8742743453444191e-6};

}  // namespace detail

/// x + x^3 p(x^2) near 0, and 1 - 2 / (exp(2 |x|) + 1) with the sign of x elsewhere, where that does not
/// cancel.
template <class T>
Block<T> tanh(const Block<T>& x) {
  constexpr T saturated = sizeof(T) == 4 ? 10 : 20;  // tanh rounds to 1
  Block<T> y;
  for_each_lane([&](int i) {
    const T magnitude = std::abs(x[i]);
    const T a = magnitude > saturated ? saturated : magnitude;
    const auto e = detail::exp_parts<T>(2 * a);
    const T power = detail::power_of_2<T>(e.exponent);
    const T far = 1 - 2 / (1 + power + power * e.fraction);
    const T near = a + a * (a * a) * detail::polynomial(a * a, detail::tanh_series<T>);
    y[i] = std::copysign(a < T(0.55) ? near : far, x[i]);
  });
  return y;
}

namespace detail {
// The coefficients of erf(x) / x as a polynomial in x^2, for x^2 in [0, 16]: the Chebyshev interpolant of
// degree 18, with an error below 2e-10. From x = 4 on, erf rounds to 1 in f32.
inline constexpr std::array<double, 19> erf_over_x{
    1.1283791668944104437,      -0.37612637994416256389,    0.11283784806429991615,
    -0.02686596375045534431,    0.0052236461496136302824,   -8.5450651019488467129e-4,
    1.2033839964639520433e-4,   -1.4825297167592423277e-5,  1.611670359767140524e-6,
    -1.546381394408387026e-7,   1.2980389195573634437e-8,   -9.3706488571225502613e-10,
    5.6823739391549955353e-11,  -2.8122359092737115011e-12, 1.0968599972908687533e-13,
    -3.2214784279409349816e-15, 6.6614222223123491978e-17,  -8.6113704267550816172e-19,
    5.2201645242380988467e-21};
}  // namespace detail

/// The error function. In f32 it is computed by a polynomial in f64, with a relative error below 1e-9.
template <class T>
Block<T> erf(const Block<T>& x) {
  Block<T> y;
  if constexpr (std::is_same_v<T, double>) {
    for (int i = 0; i < block_size; ++i) y[i] = std::erf(x[i]);
  } else {
    for_each_lane([&](int i) {
      const T v = x[i] > 4 ? T(4) : x[i] < -4 ? T(-4) : x[i];  // NaN stays
      const double wide = static_cast<double>(v);
      y[i] = static_cast<T>(wide * detail::polynomial(wide * wide, detail::erf_over_x));
    });
  }
  return y;
}

}  // namespace fovea::kernels
