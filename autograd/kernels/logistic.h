#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "autograd/kernels/vector_math.h"

// The logistic function s(x) = 1 / (1 + exp(-x)) and what is made of it.
namespace fovea::kernels {

namespace detail {

/// s(-a) = E / (1 + E) and s(a) = 1 / (1 + E) with E = exp(-a), for a >= 0. Nothing cancels or overflows, and
/// results keep their digits down to where they underflow.
template <class T, class Result = T>
struct LogisticTail {
  static constexpr T bound = sizeof(T) == 4 ? 110 : 756;  // beyond it, a exp(-a) is 0

  ExpParts<Result, T> e;  // E, less what was lost when the denominator was rounded
  T denominator;          // 1 + E
  T inverse;              // nearly 1 / (1 + E)

  /// a = high + low.
  explicit constexpr LogisticTail(T high, T low = 0)
      : e(exp_parts<Result>(high > bound ? T(0) : -high, -low)) {
    if constexpr (!is_wide) e.fraction = high > bound ? T(-1) : e.fraction;  // E is chosen to be 0
    const T power = e.times(1);
    denominator = 1 + power;
    inverse = 1 - power / 2;
    if constexpr (!is_wide) e.fraction += e.fraction_low - (power - (denominator - 1)) * inverse;
  }

  /// c s(-a) if `below`, else c s(a).
  constexpr T weigh(T c, bool below) const {
    const T product = below ? multiply_add(c, e.fraction, c) : c;
    T quotient = product / denominator;
    if constexpr (!is_wide && (sizeof(T) == 8 || !has_fma)) {
      // What was lost when the product and the quotient were rounded.
      const T lost = below ? c * e.fraction - (product - c) : T(0);
      const T upper = upper_half(quotient), denominator_upper = upper_half(denominator);
      const T remainder = (product - upper * denominator_upper) -
                          (upper * (denominator - denominator_upper) + (quotient - upper) * denominator);
      const T correction = (remainder + lost) * inverse;
      quotient += std::abs(product) <= std::numeric_limits<T>::max() ? correction : T(0);
    }
    return scaled<Result>(quotient, below ? e.exponent : IntegerOf<T>(0));
  }

 private:
  // T has digits to spare, and E is normal in it.
  static constexpr bool is_wide = sizeof(T) > sizeof(Result);
};

}  // namespace detail

/// s(x).
template <class T>
Block<T> sigmoid(Block<T> x) {
  for_each_lane([&](int i) {
    const detail::LogisticTail<T> tail(std::abs(x[i]));
    x[i] = tail.weigh(1, x[i] < 0);
  });
  return x;
}

/// s'(x) = s(x) s(-x).
template <class T>
Block<T> sigmoid_slope(Block<T> x) {
  for_each_lane([&](int i) {
    const detail::LogisticTail<T> tail(std::abs(x[i]));
    x[i] = tail.weigh(1, true) / tail.denominator;
  });
  return x;
}

/// tanh'(x) = 4 s(2x) s(-2x).
template <class T>
Block<T> tanh_slope(Block<T> x) {
  for_each_lane([&](int i) {
    const detail::LogisticTail<T> tail(2 * std::abs(x[i]));
    x[i] = tail.weigh(4, true) / tail.denominator;
  });
  return x;
}

/// x s(x).
template <class T>
Block<T> silu(Block<T> x) {
  for_each_lane([&](int i) {
    const detail::LogisticTail<T> tail(std::abs(x[i]));
    x[i] = tail.weigh(x[i] < -1000 ? T(-1000) : x[i], x[i] < 0);
  });
  return x;
}

/// s(x) (1 + x s(-x)).
template <class T>
Block<T> silu_slope(Block<T> x) {
  for_each_lane([&](int i) {
    const detail::LogisticTail<T> tail(std::abs(x[i]));
    const T limited = x[i] > 1000 ? T(1000) : x[i] < -1000 ? T(-1000) : x[i];  // times E, which is 0 there
    const T of_tail = limited / tail.denominator;
    const bool below = x[i] < 0;
    x[i] = (below ? T(0) : 1 / tail.denominator) + tail.weigh(below ? 1 + of_tail : of_tail, true);
  });
  return x;
}

/// log(1 + exp(x)) = max(x, 0) + log(1 + E). What is lost by rounding 1 + E is added to the logarithm.
template <class T>
Block<T> softplus(const Block<T>& x) {
  const Block<T> e = exp<T>(-x.abs()), sum = 1 + e;
  Block<T> y = log(sum);
  for_each_lane([&](int i) {
    const T rest = y[i] + (e[i] - (sum[i] - 1)) / sum[i];
    y[i] = (x[i] <= 0 ? T(0) : x[i]) + rest;
  });
  return y;
}

}  // namespace fovea::kernels
