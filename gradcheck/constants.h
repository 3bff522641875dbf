#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

// The constants that tune gradcheck, each with its reason. In their comments, as in gradcheck.h: x is the
// element that is moved and h the step, w the random cotangent, f the function, a the analytic gradient, and
// n +- e the numeric derivative with its error estimate.
namespace fovea::detail::constants {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();
inline constexpr double f32_rounding = 0x1p-24;

// --- Steps of the differences ------------------------------------------------------------------------------

/// The first step is max(1, |x|) / 128: rounding is far below the difference there, and most functions are
/// smooth enough for an extrapolation from there on.
inline constexpr double first_step_divisor = 128;
/// The search ends after this many halvings, whatever the scale of x.
inline constexpr int most_steps = 72;
/// Steps end at about 1e-10 of the scale of x. Rounding dominates every difference below that.
inline constexpr double smallest_relative_step = 0x1p-33;
/// Steps end where h is 4096 roundings of x, so that x + h holds h to a few digits.
inline constexpr double smallest_step_roundings = 4096;
/// No step is below this, so that dividing by it does not overflow.
inline constexpr double smallest_step = 1e-300;

// --- Rounding of f -----------------------------------------------------------------------------------------

/// The value of f is taken to be off by this many roundings of itself.
inline constexpr double value_roundings = 4;
/// Inside f numbers as large as x may be rounded, even if f is small. A sixteenth of that is assumed: it is
/// rarely seen in full, and where it is, the windows disagree.
inline constexpr double position_rounding_divisor = 16;
/// Once an output changed by no more than this from step to step, a change of 0 may mean that it was lost in
/// rounding: p - 1 has the rounding of 1.
inline constexpr double invisible_change = 0x1p-40;
/// A derivative of 0 may show as the rounding of f divided by a step of max(1, |x|) / 1024.
inline constexpr double zero_roundings = 1024;

// --- Windows: three differences at steps 4h, 2h and h, extrapolated to h = 0 -------------------------------

/// Two windows agree if they differ by no more than 4 times the sum of their errors. The errors are
/// estimates, and of many windows one may be unlucky.
inline constexpr double agreement = 4;
/// A window's error includes its largest distance over the last two windows: noisy ones may be close by
/// chance.
inline constexpr int recent_windows = 2;
/// How much an extrapolation multiplies the rounding of its difference quotients. The weights of a central
/// window add up to 1.9 and those of a one-sided one to 5; Aitken's depend on the quotients.
inline constexpr double central_amplification = 2;
inline constexpr double side_amplification = 8;
inline constexpr double aitken_amplification = 16;
/// How much a window multiplies the noise of a function that is nothing but rounding.
inline constexpr double noise_amplification = 4;
/// The search ends early if e is at most an eighth of what a may be off by, and n within half of it.
inline constexpr double early_error_divisor = 8;
inline constexpr double early_difference_divisor = 2;

// --- Kinks, jumps, steep edges, noise ----------------------------------------------------------------------

/// The slopes of the two sides differ for sure if their gap is at least 64 times the error of that gap.
inline constexpr double kink_certainty = 64;
/// A function jumps if its change across x at the smallest step is 1000 times what slopes and rounding
/// explain.
inline constexpr double jump_excess = 1000;
/// A one-sided slope is infinite if its quotients grow by a tenth at each of the last 12 halvings of the
/// step.
inline constexpr std::size_t steep_steps = 12;
inline constexpr double steep_growth = 1.1;
/// A function is nothing but rounding if its largest change between steps is at most 8 times the largest
/// among the smallest third of the steps. A smooth function changes in proportion to the step.
inline constexpr double noise_ratio = 8;
inline constexpr std::size_t smallest_steps_divisor = 3;

// --- Comparison of a with n +- e ---------------------------------------------------------------------------

/// Elements of w have a magnitude between 0.5 and 1.5, so that every element of an output counts.
inline constexpr double smallest_weight = 0.5;
/// The limit of an element also counts a tenth of the largest element of its tensor: an element that is small
/// beside the others is rounded as they are.
inline constexpr double share_of_largest = 0.1;
/// The largest element counts as at least a hundredth of the terms whose sum it is, where these cancel.
inline constexpr double cancellation_divisor = 100;
/// The rounding of a gradient is measured by scaling w by about 1 + 2^-30, as the gradient is linear in w.
/// Moving w by a few roundings alone may show too little: where a factor is near a power of 2, products are
/// then rounded alike. For a rule that is not linear, the measure shows 2^-30, which is far below the
/// tolerance.
inline constexpr double noise_scaling = 0x1p-30;
/// Each element of w also moves by about this much of itself.
inline constexpr double noise_jitter = 0x1p-50;
/// How many scalings are drawn, and what the largest move of the gradient is multiplied by, as a few draws do
/// not show the worst case.
inline constexpr int noise_draws = 6;
inline constexpr double noise_safety = 16;
/// Where a is 0 to within rounding, e may be 100 times the tolerance of f, or 8 times the limit of |a - n|
/// where f is nothing but rounding.
inline constexpr double zero_error_tolerance = 100;
inline constexpr double noise_error_ratio = 8;
/// Where all that fails is inconclusive, up to three draws of w decide.
inline constexpr int most_draws = 3;

// --- Hints -------------------------------------------------------------------------------------------------

/// Elements differ, for a hint, by more than 4 times the largest e, but this limit lies between 1e-7 and 1e-5
/// of the largest element.
inline constexpr double hint_errors = 4;
inline constexpr double smallest_hint_limit = 1e-7;
inline constexpr double largest_hint_limit = 1e-5;
/// A constant factor c must fit 1000 times better than |c - 1|: a factor close to 1 fits many gradients.
inline constexpr double factor_fit = 1e3;
/// How close to -1 a factor is a wrong sign, and how closely a part of a sum must agree with a.
inline constexpr double hint_tolerance = 1e-6;
/// Transpositions are tried for tensors with up to 5 axes, which have 120.
inline constexpr std::size_t most_permuted_axes = 5;
/// Patterns along an axis need three elements: with two, most gradients fit some pattern.
inline constexpr std::int64_t shortest_pattern = 3;

// --- f32 ---------------------------------------------------------------------------------------------------

/// How often the inputs are moved by their f32 rounding, to see how far the results move.
inline constexpr int f32_perturbations = 4;
/// Terms of a gradient that are as large as w may cancel, as p - 1 in cross-entropy: 8 roundings of them are
/// allowed.
inline constexpr double f32_cotangent_roundings = 8;

}  // namespace fovea::detail::constants
