#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "autograd/kernels/exp.h"

// Elementary functions of a block, in packets. Where a packet function is not right to the last bits
// (overflow, denormal results, NaN), single elements are computed by libm: which one does not depend on their
// neighbours.
namespace fovea::kernels {

namespace detail {
// y[i] = exact(x[i]) where x[i] is not in [low, high].
template <class T, class F>
void mend_outside(const Block<T>& x, T low, T high, Block<T>& y, F exact) {
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
  detail::mend_outside(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), y,
                       [](T v) { return std::log(v); });
  return y;
}

template <class T>
Block<T> tanh(const Block<T>& x) {
  Block<T> y = x.tanh();
  detail::mend_outside(x, T(-8), T(8), y, [](T v) { return std::tanh(v); });
  return y;
}

/// 1 / (1 + exp(-x)): right to rounding on both sides, since neither sum cancels.
template <class T>
Block<T> sigmoid(const Block<T>& x) {
  return 1 / (1 + exp<T>(-x));
}

namespace detail {
// erf(x) / x as a polynomial in x^2, on [0, 16]: the Chebyshev interpolant of degree 18, whose error is below
// 2e-10. erf is 1 to f32's rounding from 4 on.
inline constexpr std::array<double, 19> erf_over_x{
    1.1283791668944104437,      -0.37612637994416256389,    0.11283784806429991615,
    -0.02686596375045534431,    0.0052236461496136302824,   -8.5450651019488467129e-4,
    1.2033839964639520433e-4,   -1.4825297167592423277e-5,  1.611670359767140524e-6,
    -1.546381394408387026e-7,   1.2980389195573634437e-8,   -9.3706488571225502613e-10,
    5.6823739391549955353e-11,  -2.8122359092737115011e-12, 1.0968599972908687533e-13,
    -3.2214784279409349816e-15, 6.6614222223123491978e-17,  -8.6113704267550816172e-19,
    5.2201645242380988467e-21};
}  // namespace detail

/// In f32 by a polynomial in f64, within 1e-9 of the size of erf.
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
