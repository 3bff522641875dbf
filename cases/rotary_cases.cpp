#include <complex>
#include <vector>

#include "cases/cases.h"

namespace fovea {
namespace {

// What scaling multiplies the angles of pair i by: all equally, or the more the slower the pair is.
double slowdown(std::int64_t i, std::int64_t r, const RotaryOptions& options) {
  if (options.scaling == RotaryScaling::none) return 1;
  if (options.scaling == RotaryScaling::linear) return 1 / options.factor;
  const std::int64_t slowest = r / 2 - 1;
  return std::pow(options.factor, -static_cast<double>(i) / static_cast<double>(slowest));
}

// Treats each pair of channels as a complex number and multiplies it by exp(i angle).
Tensor turn_by_complex_numbers(const Tensor& x, const RotaryOptions& options) {
  const std::int64_t length = x.size(-2), d = x.size(-1), r = options.dimensions.value_or(d);
  std::vector<double> values = x.to_vector();
  for (std::int64_t row = 0; row < x.numel() / d; ++row) {
    const auto position = static_cast<double>(options.offset + row % length);
    for (std::int64_t i = 0; i < r / 2; ++i) {
      const bool halves = options.layout == RotaryLayout::halves;
      double& a = values[static_cast<std::size_t>(row * d + (halves ? i : 2 * i))];
      double& b = values[static_cast<std::size_t>(row * d + (halves ? i + r / 2 : 2 * i + 1))];
      const double rate = std::pow(options.base, -2.0 * static_cast<double>(i) / static_cast<double>(r));
      const std::complex<double> turned =
          std::complex(a, b) * std::polar(1.0, position * rate * slowdown(i, r, options));
      a = turned.real();
      b = turned.imag();
    }
  }
  return from_values(values, x.shape(), f64);
}

void add_rotary(Cases& cases, const std::string& name, const Shape& shape, const RotaryOptions& options) {
  cases.add("rotary" + name, [&](Case& c) {
    c.input("x", shape);
    c.fixed_sizes = {shape.back()};
    c.value = [=](const Inputs& in) { return rotary(in["x"], options); };
    c.oracle = [=](const Inputs& in) { return turn_by_complex_numbers(in["x"], options); };
    c.refuses<ShapeError>("an odd head size", "[rotary] 5 channels", [](const Inputs&) {
      return rotary(zeros({3, 5}));
    });
    c.refuses<ShapeError>("more channels than x has", "[rotary] 8 channels", [](const Inputs&) {
      return rotary(zeros({3, 6}), {.dimensions = 8});
    });
    c.refuses<ShapeError>("a vector", "[rotary]", [](const Inputs&) { return rotary(zeros({6})); });
    c.refuses<ValueError>("a base of 0", "[rotary] the base", [](const Inputs&) {
      return rotary(zeros({3, 6}), {.base = 0});
    });
    c.refuses<ValueError>("a factor of 0", "[rotary] the scaling factor", [](const Inputs&) {
      return rotary(zeros({3, 6}), {.factor = 0});
    });
  });
}

// Reorders channels one by one: channels 2i and 2i + 1 of the adjacent layout are channels i and i + R/2 of
// the layout in halves.
Tensor reorder_by_places(const Tensor& W, std::int64_t heads, RotaryLayout from, std::int64_t r) {
  const std::int64_t width = W.size(-1), d = width / heads;
  const std::vector<double> in = W.to_vector();
  std::vector<double> out = in;
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(in.size()) / d; ++head) {
    for (std::int64_t i = 0; i < r; ++i) {
      const auto halves = static_cast<std::size_t>(head * d + i / 2 + i % 2 * (r / 2));
      const auto adjacent = static_cast<std::size_t>(head * d + i);
      if (from == RotaryLayout::halves) out[adjacent] = in[halves];
      if (from == RotaryLayout::adjacent) out[halves] = in[adjacent];
    }
  }
  return from_values(out, W.shape(), f64);
}

}  // namespace

void add_rotary_cases(Cases& cases) {
  for (const RotaryLayout layout : {RotaryLayout::halves, RotaryLayout::adjacent}) {
    const std::string suffix = layout == RotaryLayout::halves ? ", halves" : ", adjacent";
    add_rotary(cases, suffix, {2, 3, 5, 6}, {.layout = layout});
    add_rotary(cases, suffix + ", base 10 from position 7", {3, 6},
               {.layout = layout, .base = 10, .offset = 7});
    add_rotary(cases, suffix + ", part of the channels", {2, 3, 7}, {.layout = layout, .dimensions = 4});
    add_rotary(cases, suffix + ", linear scaling", {3, 6},
               {.layout = layout, .scaling = RotaryScaling::linear, .factor = 3});
    add_rotary(cases, suffix + ", NTK scaling", {3, 10},
               {.layout = layout, .dimensions = 8, .scaling = RotaryScaling::ntk, .factor = 3});
    add_rotary(cases, suffix + ", no channels", {2, 3, 7}, {.layout = layout, .dimensions = 0});

    cases.add("convert_rotary_layout, from" + suffix.substr(1), [=](Case& c) {
      constexpr std::int64_t heads = 2;
      const RotaryLayout to = layout == RotaryLayout::halves ? RotaryLayout::adjacent : RotaryLayout::halves;
      c.input("W", {3, 14});
      c.fixed_sizes = {14};
      c.value = [=](const Inputs& in) { return convert_rotary_layout(in["W"], heads, layout, to, 6); };
      c.oracle = [=](const Inputs& in) { return reorder_by_places(in["W"], heads, layout, 6); };
      c.refuses<ShapeError>("heads that do not divide the channels", "[convert_rotary_layout] the last axis",
                            [=](const Inputs& in) { return convert_rotary_layout(in["W"], 3, layout, to); });
      c.refuses<ShapeError>("odd head sizes", "[convert_rotary_layout] 7 channels",
                            [=](const Inputs& in) { return convert_rotary_layout(in["W"], 2, layout, to); });
    });
  }
}

}  // namespace fovea
