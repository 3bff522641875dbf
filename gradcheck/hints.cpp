#include "gradcheck/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "fovea/autograd/tensor/tensor.h"
#include "gradcheck/constants.h"

namespace fovea::detail {
namespace {

using Values = std::vector<double>;

bool all_near(std::span<const double> a, std::span<const double> b, double limit) {
  return std::ranges::equal(a, b, [&](double x, double y) { return std::abs(x - y) <= limit; });
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Values scaled(std::span<const double> values, double factor) {
  Values result(values.begin(), values.end());
  for (double& v : result) v *= factor;
  return result;
}

// An axis of a shape. Elements whose index differs by 1 along this axis only are `stride` apart.
struct Axis {
  std::int64_t size, stride;
  std::int64_t position(std::size_t element) const {
    return static_cast<std::int64_t>(element) / stride % size;
  }
};

Axis axis_of(const Shape& shape, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return {shape[axis], stride};
}

// --- Patterns: each function describes the one it recognises, or returns nothing ---------------------------

std::string zero(const WrongGradient& g) {
  if (std::ranges::any_of(g.analytic, [](double a) { return a != 0; })) return {};
  return "analytic is zero: is the result detached, or the gradient of this input not returned?";
}

std::string factor(const WrongGradient& g) {
  const double c = dot(g.analytic, g.numeric) / dot(g.numeric, g.numeric);
  if (!std::isfinite(c) || g.numeric.size() < 2) return {};
  const double limit = std::min(g.limit, std::abs(c - 1) * g.limit * constants::factor_fit);
  if (!all_near(g.analytic, scaled(g.numeric, c), limit)) return {};
  if (std::abs(c + 1) < constants::hint_tolerance) return "the sign is wrong: analytic = -numeric";
  return fmt::format("off by a constant factor: analytic = {:.6g} x numeric", c);
}

std::string transposed(const WrongGradient& g) {
  std::vector<std::size_t> order(g.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  while (order.size() <= constants::most_permuted_axes && std::next_permutation(order.begin(), order.end())) {
    Values permuted(g.numeric.size());
    bool fits = true;
    for (std::size_t axis = 0; axis < order.size(); ++axis)
      fits = fits && g.shape[order[axis]] == g.shape[axis];
    if (!fits) continue;
    for (std::size_t i = 0; i < permuted.size(); ++i) {
      std::int64_t from = 0;
      for (std::size_t axis = 0; axis < order.size(); ++axis) {
        from += axis_of(g.shape, axis).position(i) * axis_of(g.shape, order[axis]).stride;
      }
      permuted[i] = g.numeric[static_cast<std::size_t>(from)];
    }
    if (all_near(g.analytic, permuted, g.limit)) {
      return fmt::format("transposed: analytic = numeric with its axes permuted by ({})",
                         fmt::join(order, ", "));
    }
  }
  return {};
}

std::string reordered(const WrongGradient& g) {
  for (std::size_t axis = 0; axis < g.shape.size(); ++axis) {
    const Axis along = axis_of(g.shape, axis);
    const auto matches = [&](const std::function<std::int64_t(std::int64_t)>& source, bool partly) {
      bool any = false;
      for (std::size_t i = 0; i < g.analytic.size(); ++i) {
        const std::int64_t at = along.position(i), from = source(at);
        if (partly && (from < 0 || from >= along.size)) continue;
        const auto j = static_cast<std::size_t>(static_cast<std::int64_t>(i) + (from - at) * along.stride);
        if (std::abs(g.analytic[i] - g.numeric[j]) > g.limit) return false;
        any = any || std::abs(g.numeric[j]) > g.limit;
      }
      return any;
    };
    if (along.size < constants::shortest_pattern) continue;
    if (matches([=](std::int64_t at) { return along.size - 1 - at; }, false)) {
      return fmt::format("reversed along axis {}", axis);
    }
    for (const std::int64_t shift : {1, -1}) {
      if (matches([=](std::int64_t at) { return at - shift; }, true)) {
        return fmt::format("shifted by {:+} along axis {}: is a slice off by one?", shift, axis);
      }
    }
  }
  return {};
}

// The analytic gradient is what one index of an axis of the output contributes, or all indices but one.
std::string part_of_output(const WrongGradient& g) {
  const auto outputs = static_cast<std::size_t>(numel(g.output_shape));
  if (g.columns.empty() || outputs > g.weights.size()) return {};
  const auto equals = [&](const std::function<bool(std::size_t)>& counts) {
    bool any = false;
    return std::ranges::all_of(g.columns,
                               [&](const WrongGradient::Column& column) {
                                 double sum = 0;
                                 for (std::size_t k = 0; k < g.weights.size(); ++k) {
                                   if (k >= outputs || counts(k)) sum += g.weights[k] * column.by_output[k];
                                 }
                                 any = any || std::abs(sum) > g.limit;
                                 const double close = constants::hint_tolerance * std::abs(sum);
                                 return std::abs(sum - g.analytic[column.element]) <= close;
                               }) &&
           any;
  };
  for (std::size_t axis = 0; axis < g.output_shape.size(); ++axis) {
    const Axis along = axis_of(g.output_shape, axis);
    for (std::int64_t kept = 0; kept < along.size && along.size > 1; ++kept) {
      if (equals([&](std::size_t k) { return along.position(k) == kept; })) {
        return fmt::format(
            "missing the sum over a broadcast axis: analytic is what index {} of the output's axis {} "
            "contributes",
            kept, axis);
      }
    }
    for (std::int64_t left_out = 0; left_out < along.size && along.size > 2; ++left_out) {
      if (equals([&](std::size_t k) { return along.position(k) != left_out; })) {
        return fmt::format("index {} of the output's axis {} is left out of the sum", left_out, axis);
      }
    }
  }
  return {};
}

// The difference, numeric - analytic, is a term that can be named.
std::string missing_term(const WrongGradient& g) {
  Values rest(g.numeric.begin(), g.numeric.end());
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= g.analytic[i];
  if (std::ssize(rest) < constants::shortest_pattern) return {};
  if (all_near(rest, Values(rest.size(), rest[0]), g.limit)) {
    return fmt::format("a term is missing: the constant {:.4g}", rest[0]);
  }
  const double along_x = dot(rest, g.x) / dot(g.x, g.x);
  if (std::isfinite(along_x) && all_near(rest, scaled(g.x, along_x), g.limit)) {
    return fmt::format("a term is missing: {:.4g} x the input", along_x);
  }
  for (std::size_t axis = 0; axis < g.shape.size(); ++axis) {
    const Axis along = axis_of(g.shape, axis);
    if (along.size < constants::shortest_pattern) continue;
    bool constant = true;
    for (std::size_t i = 0; i < rest.size() && constant; ++i) {
      const std::size_t first = i - static_cast<std::size_t>(along.position(i) * along.stride);
      constant = std::abs(rest[i] - rest[first]) <= g.limit;
    }
    if (constant) {
      return fmt::format(
          "a term is missing that is constant along axis {}, as the gradient of a sum or mean is", axis);
    }
  }
  return {};
}

// Only one element is wrong, or only elements that share an index along some axis.
std::string one_place(const WrongGradient& g) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < g.analytic.size(); ++i) {
    if (std::abs(g.analytic[i] - g.numeric[i]) > g.limit) wrong.push_back(i);
  }
  if (wrong.empty() || wrong.size() == g.analytic.size()) return {};
  if (wrong.size() == 1) return "only this one element is wrong";
  for (std::size_t axis = 0; axis < g.shape.size(); ++axis) {
    const Axis along = axis_of(g.shape, axis);
    const std::int64_t place = along.position(wrong[0]);
    if (along.size > 1 &&
        std::ranges::all_of(wrong, [&](std::size_t i) { return along.position(i) == place; })) {
      return fmt::format("only index {} of axis {} is wrong", place, axis);
    }
  }
  return {};
}

}  // namespace

std::string hint(const WrongGradient& gradient) {
  const auto finite = [](double v) { return std::isfinite(v); };
  if (!std::ranges::all_of(gradient.analytic, finite) || !std::ranges::all_of(gradient.numeric, finite))
    return {};
  for (const auto& pattern : {zero, factor, transposed, reordered, part_of_output, one_place, missing_term}) {
    if (std::string found = pattern(gradient); !found.empty()) return found;
  }
  return {};
}

}  // namespace fovea::detail
