#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "autograd/kernels/exp.h"

// Elementary functions of a block, in vector instructions. Where Eigen's function is not accurate (overflow,
// denormal results, NaN), the element is computed by the standard library. Which of the two computes an
// element depends on that element alone.
namespace fovea::kernels {

namespace detail {
// Replaces y[i] by exact(x[i]) where x[i] is not in [low, high].
template <class T, class F>
void correct_outside(const Block<T>& x, T low, T high, Block<T>& y, F exact) {
  Block<T> outside;
  for_each_lane([&](int i) { outside[i] = ((x[i] >= low) & (x[i] <= high)) ? T(0) : T(1); });
  if (outside.sum() == 0) return;
  for (int i = 0; i < block_size; ++i) {
    if (!(x[i] >= low && x[i] <= high)) y[i] = exact(x[i]);
  }
}
}  // namespace detail

template <class T>
Block<T> log(const Block<T>& x) {
  Block<T> y = x.log();
  detail::correct_outside(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), y,
                          [](T v) { return std::log(v); });
  return y;
}

template <class T>
Block<T> tanh(const Block<T>& x) {
  Block<T> y = x.tanh();
  detail::correct_outside(x, T(-8), T(8), y, [](T v) { return std::tanh(v); });
  return y;
}

/// 1 / (1 + exp(-x)). It is accurate for large x of either sign, since nothing cancels.
template <class T>
Block<T> sigmoid(const Block<T>& x) {
  return 1 / (1 + exp<T>(-x));
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
  if constexpr (std::is_same_v<T, double>) {
    Block<T> y;
    for (int i = 0; i < block_size; ++i) y[i] = std::erf(x[i]);
    return y;
  } else {
    Block<double> v = cast<double>(x);
    for_each_lane([&](int i) { v[i] = v[i] > 4 ? 4 : v[i] < -4 ? -4 : v[i]; });  // NaN stays
    const Block<double> square = v * v;
    Block<double> ratio = Block<double>::Constant(detail::erf_over_x.back());
    for (std::size_t k = detail::erf_over_x.size() - 1; k-- > 0;) {
      ratio = ratio * square + detail::erf_over_x[k];
    }
    return cast<T>(Block<double>(v * ratio));
  }
}

}  // namespace fovea::kernels
