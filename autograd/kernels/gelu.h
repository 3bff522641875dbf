#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "autograd/kernels/logistic.h"

// The normal distribution N(0, 1) and GELU, x Phi(x), in its exact form and in its form with tanh. All keep
// their digits down to where they underflow. Results in f32 are computed in f64.
namespace fovea::kernels {

/// u(x) = linear x + cubic x^3 = sqrt(8 / pi) (x + 0.044715 x^3), the argument of GELU's form with tanh.
inline constexpr double gelu_linear = 1.5957691216057308, gelu_cubic = 0.07135481627260025;
/// 1 / sqrt(2 pi)
inline constexpr double density_at_0 = 0.3989422804014327;

namespace detail {

// Q(a) = 1 - Phi(a) = exp(-a^2 / 2) ratio(a), and ratio(a) (a + offset) is nearly constant: `series` is a
// polynomial for it in a / (a + offset) - 1/2, a Chebyshev interpolant with a relative error below 2^-29 and
// 2^-57. Beyond `bound`, a Q(a) is 0.
template <class T>
struct NormalTailNumbers;

template <>
struct NormalTailNumbers<float> {
  static constexpr double bound = 15, offset = 3;
  static constexpr std::array series{0.72908369070083414,  -1.0186639787975152,  0.92007070953627779,
                                     -0.37810198956466286, -0.16739666963280789, 0.22303474886741802,
                                     0.065544760142343069, -0.13238769393963074, -0.062619185278249043,
                                     0.068184618986801949, 0.056715853177142183};
};

template <>
struct NormalTailNumbers<double> {
  static constexpr double bound = 39, offset = 1.25;
  static constexpr double constant_low = -9.5290564318596651e-18;  // the next digits of series[0]
  static constexpr double linear_low = -7.3480403762269642e-18;    // and of series[1]
  static constexpr std::array series{
      0.5769008032640794,     -0.2273468780892532, -0.32181969904175073, -0.06551363127108996,
      0.22955031525511335,    0.3486008549872956,  0.2086846314927823,   -0.1330056973892104,
      -0.5046134863523237,    -0.6804686762662963, -0.4699403577902881,  0.18391146524891544,
      1.1246553176736802,     1.957301421265185,   2.1137271583695485,   1.0389489672777446,
      -1.5368167427843746,    -5.43921800767481,   -9.548268653175617,   -9.192430351300631,
      -8.619412280144705e-05, -6.767670958912569,  -43.63610137085039,   119.01731970468374,
      581.2514004583643,      -202.68900137642612, -2875.1695651810246,  241.6788797916179,
      11806.012152542553,     2544.979180491821,   -35714.70403546574,   -20376.117611407775,
      65427.42319166009,      56400.356621155486,  -62982.594048516716,  -69394.60844812416,
      23753.210701963948,     31698.642283087884};
};

// (Phi(x) - 1/2) / x as a polynomial in x^2, a Chebyshev interpolant for |x| <= 1/2, for f64.
inline constexpr std::array half_erf_series{
    0.398942280401432678,    -0.0664903800669054436,  0.00997355701003553305,
    -0.00118732821546923621, 0.000115434687394002584, -9.44465378671132525e-6,
    6.65953165746522093e-7,  -4.11647970878236734e-8, 2.14530155270919966e-9};

// exp(-factor a^2), for a factor that is a power of 2. In f64 the square is taken in two parts, since its
// rounding would be multiplied by its size.
template <class T>
constexpr ExpParts<T, double> gaussian_parts(double a, double factor) {
  if constexpr (sizeof(T) == 4) return exp_parts<T>(-factor * (a * a));
  const double upper = upper_half(a);
  return exp_parts<T>(-factor * (upper * upper), -factor * ((a - upper) * (a + upper)));
}

template <class T>
struct NormalTail {
  using Numbers = NormalTailNumbers<T>;

  double a;
  double sum;                   // a + offset
  double share;                 // a / (a + offset)
  double variable_part;         // ratio(a) (a + offset) is the constant of the series and this
  ExpParts<T, double> density;  // exp(-a^2 / 2)

  explicit constexpr NormalTail(double magnitude)
      : a(magnitude > Numbers::bound ? Numbers::bound : magnitude),
        sum(a + Numbers::offset),
        share(a / sum),
        variable_part((share - 0.5) * polynomial<1>(share - 0.5, Numbers::series)),
        density(gaussian_parts<T>(a, 0.5)) {}
  constexpr double ratio_by_sum() const { return Numbers::series[0] + variable_part; }
  /// Q(a).
  constexpr double probability() const { return density.times(ratio_by_sum()) / sum; }
  /// a Q(a). In f64 the quotient and the product are taken in two parts, so that the result is rounded once.
  constexpr double moment() const {
    const double grown = ratio_by_sum() * density.fraction;
    const double variable = variable_part + grown;
    const double product = Numbers::series[0] + variable;
    if constexpr (sizeof(T) == 4) {
      return scaled<T>(share * product, density.exponent);
    } else {
      // What the share lacks counts in the series too, whose slope is nearly that of its first terms.
      const double missing = share_low();
      const double of_missing =
          missing * (Numbers::series[1] + 2 * Numbers::series[2] * (share - 0.5)) * (1 + density.fraction);
      const double product_low = (variable - (product - Numbers::series[0])) +
                                 lost_in_sum(variable_part, grown, variable) + of_missing +
                                 product * density.fraction_low + Numbers::constant_low +
                                 (share - 0.5) * Numbers::linear_low;
      const double product_upper = upper_half(product), share_upper = upper_half(share);
      const double upper = share_upper * product_upper;
      const double lower = share_upper * (product - product_upper) + (share - share_upper) * product;
      return scaled<T>(upper + (lower + (share * product_low + missing * product)), density.exponent);
    }
  }
  /// a / (a + offset) - share.
  constexpr double share_low() const {
    const double sum_low = lost_in_sum(a, Numbers::offset, sum);
    const double share_upper = upper_half(share), sum_upper = upper_half(sum);
    const double remainder =
        (a - share_upper * sum_upper) - (share_upper * (sum - sum_upper) + (share - share_upper) * sum);
    return (remainder - share * sum_low) * (1 - share) / Numbers::offset;  // (1 - share) / offset is 1 / sum
  }
  /// (a Q(a))' = Q(a) - a phi(a).
  constexpr double moment_slope() const { return density.times(ratio_by_sum() / sum - a * density_at_0); }
};

// f(x) of every element, computed in f64.
template <class T, class F>
Block<T> map_in_double(Block<T> x, const F& f) {
  for_each_lane([&](int i) { x[i] = static_cast<T>(f(static_cast<double>(x[i]))); });
  return x;
}

}  // namespace detail

/// exp(-factor x^2), for a factor of 1 or 1/2.
template <class T>
Block<T> gaussian(const Block<T>& x, double factor) {
  return detail::map_in_double(x, [factor](double v) {
    constexpr double half_bound = sizeof(T) == 4 ? 15 : 39, bound_of_1 = sizeof(T) == 4 ? 10.7 : 27.6;
    const double bound = factor < 1 ? half_bound : bound_of_1;  // exp(-factor bound^2) is 0
    const double a = std::abs(v) > bound ? bound : std::abs(v);
    return detail::gaussian_parts<T>(a, factor).times(1);
  });
}

/// Phi(x), the cumulative distribution function.
template <class T>
Block<T> normal_cdf(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const double q = detail::NormalTail<T>(std::abs(v)).probability();
    return v < 0 ? q : 1 - q;
  });
}

/// x Phi(x), which is -a Q(a) for x = -a and x - x Q(x) for x >= 0. Near 0 f64 is better served by x / 2 and
/// what is even.
template <class T>
Block<T> gelu(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const double moment = detail::NormalTail<T>(std::abs(v)).moment();
    const double y = v < 0 ? -moment : v - moment;
    if constexpr (sizeof(T) == 4) return y;
    const double near = v / 2 + v * v * detail::polynomial(v * v, detail::half_erf_series);
    return std::abs(v) < 0.5 ? near : y;
  });
}

/// Phi(x) + x phi(x).
template <class T>
Block<T> gelu_slope(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const double slope = detail::NormalTail<T>(std::abs(v)).moment_slope();
    return v < 0 ? slope : 1 - slope;
  });
}

namespace detail {

// The next digits of gelu_linear and gelu_cubic.
inline constexpr double gelu_linear_low = -9.9693088091109203e-17, gelu_cubic_low = -6.1751499181553155e-19;

// u(a), in two parts for f64, and its slope.
template <class T>
struct GeluArgument {
  static constexpr double bound = sizeof(T) == 4 ? 13 : 23;  // a exp(-u(a)) is 0

  double a, high, low = 0, slope;

  explicit constexpr GeluArgument(double magnitude) : a(magnitude > bound ? bound : magnitude) {
    const double square = a * a;
    slope = gelu_linear + 3 * gelu_cubic * square;
    if constexpr (sizeof(T) == 4) {
      high = a * (gelu_linear + gelu_cubic * square);
    } else {
      // Products of upper halves are exact, and what is left out of them is far smaller.
      const double a_upper = upper_half(a), a_lower = a - a_upper;
      const double square_upper = upper_half(square);
      const double square_lower = (a_upper * a_upper - square_upper) + a_lower * (a + a_upper);
      constexpr double cubic_upper = upper_half(gelu_cubic);
      constexpr double cubic_lower = (gelu_cubic - cubic_upper) + gelu_cubic_low;
      const double term = cubic_upper * square_upper;
      const double term_low = cubic_upper * square_lower + cubic_lower * square;
      const double factor = gelu_linear + term;
      const double lost = lost_in_sum(gelu_linear, term, factor);
      const double factor_upper = upper_half(factor);
      const double factor_lower = (factor - factor_upper) + (lost + (term_low + gelu_linear_low));
      high = a_upper * factor_upper;
      low = a * factor_lower + a_lower * factor_upper;
    }
  }
};

}  // namespace detail

/// The form with tanh, x/2 (1 + tanh(u(x) / 2)), is computed as x s(u(x)) with the logistic function s: where
/// x is far below 0, 1 + tanh would be nothing but the rounding of 1.
template <class T>
Block<T> gelu_tanh(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const detail::GeluArgument<T> u(std::abs(v));
    const detail::LogisticTail<double, T> tail(u.high, u.low);
    return tail.weigh(v < 0 ? -u.a : v, v < 0);
  });
}

/// s'(u(x)) = s(u) s(-u).
template <class T>
Block<T> gelu_tanh_density(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const detail::GeluArgument<T> u(std::abs(v));
    const detail::LogisticTail<double, T> tail(u.high, u.low);
    return tail.weigh(1, true) / tail.denominator;
  });
}

/// s(u) + x u'(x) s(u) s(-u).
template <class T>
Block<T> gelu_tanh_slope(const Block<T>& x) {
  return detail::map_in_double(x, [](double v) {
    const detail::GeluArgument<T> u(std::abs(v));
    const detail::LogisticTail<double, T> tail(u.high, u.low);
    const double of_tail = u.a * u.slope / tail.denominator;
    return (v < 0 ? 0 : 1 / tail.denominator) + tail.weigh(v < 0 ? 1 - of_tail : of_tail, true);
  });
}

}  // namespace fovea::kernels
