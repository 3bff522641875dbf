#include "gradcheck/richardson.h"

#include <algorithm>
#include <cmath>

namespace fovea::detail {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr int most_steps = 72;

// Not within their errors alone: those are estimates too, and of many later windows one may be unlucky.
bool agree(const Slope& a, const Slope& b) { return std::abs(a.value - b.value) <= 4 * (a.error + b.error); }

// A difference quotient, and what rounding may have done to it.
struct Quotient {
  double value = nan;
  double rounding = infinity;
  double terms = 0;  // sum of the magnitudes of what `value` is the sum of
};

// A sequence of windows from large steps to small ones.
class Windows {
 public:
  // Its own uncertainty, and how far it is from the windows before: from the last two, as noisy ones
  // may be close by chance.
  void add(double value, double uncertainty, double step) {
    if (!all_.empty()) {
      distances_.push_back(std::abs(value - all_.back().value));
      const std::size_t recent = std::min<std::size_t>(2, distances_.size());
      uncertainty +=
          *std::max_element(distances_.end() - static_cast<std::ptrdiff_t>(recent), distances_.end());
    }
    all_.push_back({value, uncertainty});
    steps_.push_back(step);
  }
  // Of the function, that the uncertainties do not have yet.
  void add_noise(double noise) {
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].error += 4 * noise / steps_[i];
  }
  void clear() { *this = Windows(); }
  bool empty() const { return all_.empty(); }

  // The most precise of those that no later one refutes.
  std::size_t best() const {
    std::size_t best = all_.size() - 1;
    for (std::size_t i = all_.size() - 1; i-- > 0;) {
      const auto later = std::span(all_).subspan(i + 1);
      const bool confirmed = std::ranges::all_of(later, [&](const Slope& l) { return agree(l, all_[i]); });
      if (confirmed && all_[i].error < all_[best].error) best = i;
    }
    return best;
  }
  Slope best_slope() const { return all_.empty() ? Slope() : all_[best()]; }
  double best_step() const { return all_.empty() ? 0 : steps_[best()]; }

 private:
  std::vector<Slope> all_;
  std::vector<double> steps_, distances_;
};

class Richardson {
 public:
  Richardson(const DirectionalFunction& f, std::span<const double> w, std::span<const double> noise,
             const Search& search)
      : f_(f), w_(w), noise_(noise), search_(search), last_change_(w.size(), 0) {}

  Differences run(std::span<const double> centre) {
    result_.finite = note(centre);
    if (!result_.finite) return std::move(result_);
    double step = std::max(1.0, std::abs(search_.position)) / 128;
    const double last = smallest_step();
    for (int k = 0; k < most_steps && step >= last; ++k, step /= 2) {
      take(step);
      if (met()) break;
    }
    finish();
    return std::move(result_);
  }

 private:
  // Steps go down to 1e-10 of the numbers' scale, but not where x + h is no longer exact to a few digits.
  double smallest_step() const {
    const double position = std::abs(search_.position);
    const double scale = position > 0 ? position : search_.scale;
    const double exact = 4096 * epsilon * position;
    return std::max({exact, 0x1p-33 * std::min(1.0, scale), 1e-300});
  }

  Sample sample(double t) {
    ++result_.evaluations;
    Sample s = f_(t);
    s.finite = note(s.values);
    return s;
  }

  // Returns whether all are finite; only then do they count for the magnitude.
  bool note(std::span<const double> values) {
    if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) return false;
    double magnitude = 0;
    for (std::size_t i = 0; i < w_.size(); ++i) {
      magnitude += std::abs(w_[i]) * std::max(std::abs(values[i]), noise_[i] / epsilon);
    }
    result_.magnitude = std::max(result_.magnitude, magnitude);
    return true;
  }

  // A few roundings of the output, or its noise, which is a largest one as it is.
  double rounding_of(std::size_t i, const Sample& from, const Sample& to) const {
    return std::max(
        {4 * epsilon * std::abs(from.values[i]), 4 * epsilon * std::abs(to.values[i]), noise_[i]});
  }

  // An output that has not changed at any step yet is taken for independent, and its rounding for harmless.
  // One whose change became too small to see, as p - 1 has the rounding of 1, is uncertain by the last change
  // seen.
  Quotient quotient(const Sample& from, const Sample& to) {
    if (!from.finite || !to.finite) return {};
    constexpr double too_small_to_see = 0x1p-40;
    Quotient q{0, 0, 0};
    for (std::size_t i = 0; i < w_.size(); ++i) {
      const double a = from.values[i], b = to.values[i];
      if (a != b) last_change_[i] = std::abs(b - a);
      if (last_change_[i] == 0) continue;
      q.value += w_[i] * (b - a);
      q.terms += std::abs(w_[i] * (b - a));
      double rounding = rounding_of(i, from, to);
      if (a == b && last_change_[i] <= too_small_to_see) rounding = std::max(rounding, last_change_[i]);
      q.rounding += std::abs(w_[i]) * rounding;
    }
    const double run = to.t - from.t;
    q.value /= run;
    q.terms /= std::abs(run);
    // Inside f, numbers of x's own size may be rounded, though f itself is small. Seldom is all of that seen,
    // and what is, the windows' disagreement shows.
    q.rounding = std::max(q.rounding, epsilon * std::abs(search_.position * q.value) / 16) / std::abs(run);
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

  // The central quotients' errors go as h^2, h^4 ...
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
    central_.add(window, std::abs(window - fine) + 2 * q.rounding, step);
  }

  // Those of one side go as h, h^2, h^3 ..., or, at the edge of a domain, as some broken power of h: the
  // quotients then form a geometric series, whose limit is Aitken's.
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
    windows.add(window, std::abs(window - first) + 8 * q.rounding, step);

    const double curvature = (q2 - q1) - (q1 - q0);
    const double shift = curvature == 0 ? 0 : (q2 - q1) * (q2 - q1) / curvature;
    aitken.add(q2 - shift, (aitken.empty() ? std::abs(shift) : 0) + 16 * q.rounding, step);
  }

  bool met() const {
    if (central_.empty()) return false;
    const Slope best = central_.best_slope();
    const double rounding = result_.rounding_of_zero(search_.position);
    if (std::abs(search_.analytic) <= rounding && std::abs(best.value) + best.error <= rounding) return true;
    return best.error <= search_.limit / 8 && std::abs(best.value - search_.analytic) <= search_.limit / 2;
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
    if (met()) return;
    find_noise();
    differentiate_outputs();
  }

  void note_central() {
    result_.central = central_.best_slope();
    result_.step = central_.best_step();
  }

  // The best there is, or infinity where the quotients grow without end.
  static Slope side(const Windows& windows, const Windows& aitken, const std::vector<Quotient>& quotients) {
    constexpr std::size_t long_enough = 12;
    if (quotients.size() > long_enough) {
      bool grows = true;
      for (std::size_t i = quotients.size() - long_enough; i < quotients.size(); ++i) {
        grows = grows && quotients[i].value / quotients[i - 1].value > 1.1;
      }
      if (grows) return {std::copysign(infinity, quotients.back().value), 0};
    }
    return better(windows, aitken);
  }

  // What is left between the sides when the step goes to 0.
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
    result_.jumps = std::isfinite(smooth) && std::abs(jump) > 1000 * (smooth + rounding);
  }

  // A function may be nothing but rounding, of terms that cancel, and neither its values nor the noise that
  // was measured say how much. Then it moves as far between small steps as between large ones, which counts
  // where the rule says zero.
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
      if (3 * k > ups_.size()) at_small_steps = std::max(at_small_steps, moved);
    }
    if (largest <= known || largest > 8 * at_small_steps) return;
    result_.noise = largest;
    if (std::abs(search_.analytic) <= result_.rounding_of_zero(search_.position)) {
      central_.add_noise(largest);
      note_central();
    } else {
      result_.noise = 0;
    }
  }

  void differentiate_outputs() {
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
  std::vector<double> last_change_;  // of each output, not 0 once it has changed
  std::vector<Sample> ups_, downs_;  // by step, from the largest
  std::vector<Quotient> central_quotients_, left_quotients_, right_quotients_;
  Windows central_, left_, left_aitken_, right_, right_aitken_;
  Differences result_;
};

}  // namespace

double Differences::rounding_of_zero(double position) const {
  return 1024 * std::max(epsilon * magnitude, noise) / std::max(1.0, std::abs(position));
}

Slope Differences::best() const {
  const bool has_left = !std::isnan(left.value), has_right = !std::isnan(right.value);
  if (std::isnan(central.value) && has_left != has_right) return has_left ? left : right;
  return central;
}

bool Differences::is_kink(double analytic, double limit) const {
  if (std::isinf(best().value) && best().value == analytic) return true;  // infinitely steep, and it says so
  if (std::isnan(left.value) || std::isnan(right.value)) return false;
  const double gap = std::abs(left.value - right.value), doubt = left.error + right.error;
  const bool differ = gap > limit && doubt <= gap / 64;
  const double low = std::min(left.value, right.value), high = std::max(left.value, right.value);
  return (differ || jumps) && analytic >= low - doubt - limit && analytic <= high + doubt + limit;
}

Differences differentiate(const DirectionalFunction& f, std::span<const double> centre,
                          std::span<const double> w, std::span<const double> noise, const Search& search) {
  return Richardson(f, w, noise, search).run(centre);
}

}  // namespace fovea::detail
