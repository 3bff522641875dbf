#include "gradcheck/richardson.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/base/non_finite.h"
#include "gradcheck/constants.h"

namespace fovea::detail {
namespace {

using constants::epsilon;

// A difference quotient, and how far rounding may put it off.
struct Quotient {
  double value = nan;
  double rounding = infinity;
  double terms = 0;  // the sum of the magnitudes of the terms of `value`
};

class Richardson {
 public:
  Richardson(const DirectionalFunction& f, std::span<const double> w, std::span<const double> noise,
             const Search& search)
      : f_(f), w_(w), noise_(noise), search_(search), last_change_(w.size(), 0) {}

  Differences run(std::span<const double> centre) {
    result_.finite = note(centre);
    if (!result_.finite) return std::move(result_);
    double step = std::max(1.0, std::abs(search_.position)) / constants::first_step_divisor;
    const double last = smallest_step();
    for (int k = 0; k < constants::most_steps && step >= last; ++k, step /= 2) {
      take(step);
      if (is_confirmed()) break;
    }
    finish();
    return std::move(result_);
  }

 private:
  double smallest_step() const {
    const double position = std::abs(search_.position);
    const double scale = position > 0 ? position : search_.scale;
    const double exact = constants::smallest_step_roundings * epsilon * position;
    return std::max(
        {exact, constants::smallest_relative_step * std::min(1.0, scale), constants::smallest_step});
  }

  Sample sample(double t) {
    ++result_.evaluations;
    Sample s = f_(t);
    s.finite = note(s.values);
    return s;
  }

  // Returns whether all values are finite. Only then do they count for the magnitude.
  bool note(std::span<const double> values) {
    if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) return false;
    double magnitude = 0;
    for (std::size_t i = 0; i < w_.size(); ++i) {
      magnitude += std::abs(w_[i]) * std::max(std::abs(values[i]), noise_[i] / epsilon);
    }
    result_.magnitude = std::max(result_.magnitude, magnitude);
    return true;
  }

  // How far rounding may put output i off: a few roundings of its value, or its noise if that is larger.
  double rounding_of(std::size_t i, const Sample& from, const Sample& to) const {
    constexpr double rounding = constants::value_roundings * epsilon;
    return std::max({rounding * std::abs(from.values[i]), rounding * std::abs(to.values[i]), noise_[i]});
  }

  // An output that has not changed at any step so far is taken to be independent of x, and adds no rounding.
  // One whose change has become too small to be seen is uncertain by the last change that was.
  Quotient quotient(const Sample& from, const Sample& to) {
    if (!from.finite || !to.finite) return {};
    Quotient q{0, 0, 0};
    for (std::size_t i = 0; i < w_.size(); ++i) {
      const double a = from.values[i], b = to.values[i];
      if (a != b) last_change_[i] = std::abs(b - a);
      if (last_change_[i] == 0) continue;
      q.value += w_[i] * (b - a);
      q.terms += std::abs(w_[i] * (b - a));
      double rounding = rounding_of(i, from, to);
      if (a == b && last_change_[i] <= constants::invisible_change)
        rounding = std::max(rounding, last_change_[i]);
      q.rounding += std::abs(w_[i]) * rounding;
    }
    const double run = to.t - from.t;
    q.value /= run;
    q.terms /= std::abs(run);
    const double inner_rounding =
        epsilon * std::abs(search_.position * q.value) / constants::position_rounding_divisor;
    q.rounding = std::max(q.rounding, inner_rounding) / std::abs(run);
    return q;
  }

  void take(double step) {
    Sample up = sample(step), down = sample(-step);
    add_central(quotient(down, up), step);
    if (!ups_.empty()) add_side(right_, right_quotients_, right_aitken_, quotient(up, ups_.back()), step);
    if (!downs_.empty()) add_side(left_, left_quotients_, left_aitken_, quotient(downs_.back(), down), step);
    ups_.push_back(std::move(up));
    downs_.push_back(std::move(down));
  }

  // The errors of central quotients are powers h^2, h^4 ... of the step.
  void add_central(const Quotient& q, double step) {
    if (!std::isfinite(q.value)) {
      central_quotients_.clear();
      central_.clear();
      return;
    }
    if (central_quotients_.empty()) result_.terms = q.terms;
    central_quotients_.push_back(q);
    const std::size_t n = central_quotients_.size();
    if (n < 3) return;
    const Quotient &q0 = central_quotients_[n - 3], &q1 = central_quotients_[n - 2];
    const double coarse = (4 * q1.value - q0.value) / 3, fine = (4 * q.value - q1.value) / 3;
    const double window = (16 * fine - coarse) / 15;
    central_.add(window, std::abs(window - fine) + constants::central_amplification * q.rounding, step);
  }

  // The errors of one-sided quotients are powers h, h^2, h^3 ... of the step, or at the edge of a domain a
  // fractional power of it. The quotients then form a geometric series, whose limit Aitken's extrapolation
  // finds.
  static void add_side(Windows& windows, std::vector<Quotient>& quotients, Windows& aitken, const Quotient& q,
                       double step) {
    if (!std::isfinite(q.value)) {
      quotients.clear();
      windows.clear();
      aitken.clear();
      return;
    }
    quotients.push_back(q);
    const std::size_t n = quotients.size();
    if (n < 3) return;
    const double q0 = quotients[n - 3].value, q1 = quotients[n - 2].value, q2 = q.value;
    const double first = 2 * q2 - q1;
    const double window = (4 * first - (2 * q1 - q0)) / 3;
    windows.add(window, std::abs(window - first) + constants::side_amplification * q.rounding, step);

    const double curvature = (q2 - q1) - (q1 - q0);
    const double shift = curvature == 0 ? 0 : (q2 - q1) * (q2 - q1) / curvature;
    aitken.add(q2 - shift,
               (aitken.empty() ? std::abs(shift) : 0) + constants::aitken_amplification * q.rounding, step);
  }

  // Whether the best window agrees with the expected value closely enough to end the search.
  bool is_confirmed() const {
    if (central_.empty()) return false;
    const Slope best = central_.best_slope();
    const double rounding = result_.rounding_of_zero(search_.position);
    if (std::abs(search_.analytic) <= rounding && std::abs(best.value) + best.error <= rounding) return true;
    return best.error <= search_.limit / constants::early_error_divisor &&
           std::abs(best.value - search_.analytic) <= search_.limit / constants::early_difference_divisor;
  }

  static Slope better(const Windows& a, const Windows& b) {
    const Slope first = a.best_slope(), second = b.best_slope();
    return second.error < first.error ? second : first;
  }

  void finish() {
    note_central();
    result_.left = side(left_, left_aitken_, left_quotients_);
    result_.right = side(right_, right_aitken_, right_quotients_);
    find_jump();
    if (is_confirmed()) return;
    find_noise();
    differentiate_outputs();
  }

  void note_central() {
    result_.central = central_.best_slope();
    result_.step = central_.best_step();
  }

  // The best slope of one side, or infinity where the quotients grow without end.
  static Slope side(const Windows& windows, const Windows& aitken, const std::vector<Quotient>& quotients) {
    if (quotients.size() > constants::steep_steps) {
      bool grows = true;
      for (std::size_t i = quotients.size() - constants::steep_steps; i < quotients.size(); ++i) {
        grows = grows && quotients[i].value / quotients[i - 1].value > constants::steep_growth;
      }
      if (grows) return {std::copysign(infinity, quotients.back().value), 0};
    }
    return better(windows, aitken);
  }

  // Whether a difference between the two sides is left as the step goes to 0.
  void find_jump() {
    std::size_t k = ups_.size();
    while (k > 0 && !(ups_[k - 1].finite && downs_[k - 1].finite)) --k;
    if (k == 0) return;
    const Sample &up = ups_[k - 1], &down = downs_[k - 1];
    double jump = 0, rounding = 0;
    for (std::size_t i = 0; i < w_.size(); ++i) {
      jump += w_[i] * (up.values[i] - down.values[i]);
      rounding += epsilon * std::abs(w_[i]) * (std::abs(up.values[i]) + std::abs(down.values[i]));
    }
    const double slopes = std::abs(result_.left.value) + std::abs(result_.right.value);
    const double smooth = (up.t - down.t) * (slopes + result_.left.error + result_.right.error);
    result_.jumps = std::isfinite(smooth) && std::abs(jump) > constants::jump_excess * (smooth + rounding);
  }

  // A function may be nothing but the rounding of terms that cancel, though neither its values nor the
  // measured noise tell how large that is. It then moves as far between small steps as between large ones.
  // This counts only where the rule gives zero.
  void find_noise() {
    double largest = 0, at_small_steps = 0, known = 0;
    const auto move = [&](const Sample& from, const Sample& to) {
      if (!from.finite || !to.finite) return 0.0;
      double sum = 0, rounding = 0;
      for (std::size_t i = 0; i < w_.size(); ++i) {
        sum += w_[i] * (to.values[i] - from.values[i]);
        rounding += std::abs(w_[i]) * rounding_of(i, from, to);
      }
      known = std::max(known, rounding);
      return std::abs(sum);
    };
    for (std::size_t k = 1; k < ups_.size(); ++k) {
      const double moved = std::max(move(ups_[k - 1], ups_[k]), move(downs_[k - 1], downs_[k]));
      largest = std::max(largest, moved);
      if (constants::smallest_steps_divisor * k > ups_.size())
        at_small_steps = std::max(at_small_steps, moved);
    }
    if (largest <= known || largest > constants::noise_ratio * at_small_steps) return;
    result_.noise = largest;
    if (std::abs(search_.analytic) <= result_.rounding_of_zero(search_.position)) {
      central_.add_noise(largest);
      note_central();
    } else {
      result_.noise = 0;
    }
  }

  // The derivative of each output, from the difference at the best step and the one before it.
  void differentiate_outputs() {
    // The sample's t is the step up to the rounding of x + h, and the sample before it is twice as far.
    const auto at = std::ranges::find_if(ups_, [&](const Sample& s) { return s.t <= 1.5 * result_.step; });
    if (at == ups_.end() || result_.step == 0) return;
    const auto k = static_cast<std::size_t>(at - ups_.begin());
    if (k == 0 || !ups_[k - 1].finite || !downs_[k - 1].finite) return;
    const Sample &up = ups_[k], &down = downs_[k], &far_up = ups_[k - 1], &far_down = downs_[k - 1];
    for (std::size_t i = 0; i < w_.size(); ++i) {
      const double near = (up.values[i] - down.values[i]) / (up.t - down.t);
      const double far = (far_up.values[i] - far_down.values[i]) / (far_up.t - far_down.t);
      result_.by_output.push_back((4 * near - far) / 3);
    }
  }

  const DirectionalFunction& f_;
  std::span<const double> w_, noise_;
  const Search& search_;
  std::vector<double> last_change_;  // of each output; 0 until it has changed
  std::vector<Sample> ups_, downs_;  // at +h and -h, from the largest step to the smallest
  std::vector<Quotient> central_quotients_, left_quotients_, right_quotients_;
  Windows central_, left_, left_aitken_, right_, right_aitken_;
  Differences result_;
};

}  // namespace

double Differences::rounding_of_zero(double position) const {
  return constants::zero_roundings * std::max(epsilon * magnitude, noise) / std::max(1.0, std::abs(position));
}

Slope Differences::best() const {
  const bool has_left = !std::isnan(left.value), has_right = !std::isnan(right.value);
  if (std::isnan(central.value) && has_left != has_right) return has_left ? left : right;
  return central;
}

bool Differences::is_kink(double analytic, double limit) const {
  if (std::isinf(best().value) && best().value == analytic)
    return true;  // infinitely steep, as the rule says
  if (std::isnan(left.value) || std::isnan(right.value)) return false;
  const double gap = std::abs(left.value - right.value), doubt = left.error + right.error;
  const bool differ = gap > limit && doubt <= gap / constants::kink_certainty;
  const double low = std::min(left.value, right.value), high = std::max(left.value, right.value);
  return (differ || jumps) && analytic >= low - doubt - limit && analytic <= high + doubt + limit;
}

Differences differentiate(const DirectionalFunction& f, std::span<const double> centre,
                          std::span<const double> w, std::span<const double> noise, const Search& search) {
  return Richardson(f, w, noise, search).run(centre);
}

}  // namespace fovea::detail
