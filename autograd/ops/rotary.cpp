#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::row_major;

namespace {

// R: how many of d channels are rotated. Throws: ShapeError.
std::int64_t rotated_channels(const char* op, std::int64_t d, std::optional<std::int64_t> dimensions) {
  const std::int64_t r = dimensions.value_or(d);
  if (r < 0 || r > d) {
    fail<ShapeError>("[{}] {} channels are to be rotated, but a head has {}", op, r, d);
  }
  if (r % 2 != 0) {
    fail<ShapeError>("[{}] {} channels can't be rotated in pairs: make the number even", op, r);
  }
  return r;
}

struct CosSin {
  double cos, sin;
};

// The angle by which each of the R/2 pairs rotates from one position to the next.
std::vector<double> angles_per_position(std::int64_t r, const RotaryOptions& options) {
  const auto size = static_cast<double>(r);
  double base = options.base, scale = 1;
  if (options.scaling == RotaryScaling::linear) scale = 1 / options.factor;
  // With R = 2 there is only the fastest pair, which does not depend on the base.
  if (options.scaling == RotaryScaling::ntk && r > 2) base *= std::pow(options.factor, size / (size - 2));
  std::vector<double> angles;
  for (std::int64_t i = 0; i < r / 2; ++i) {
    angles.push_back(scale * std::pow(base, -2.0 * static_cast<double>(i) / size));
  }
  return angles;
}

// The rotation of every position and pair, (T, R/2). In f64: an f32 angle at position 10,000 is off by
// 1/2000.
std::vector<CosSin> rotations(std::int64_t length, std::int64_t r, const RotaryOptions& options) {
  const std::int64_t pairs = r / 2;
  const std::vector<double> angles = angles_per_position(r, options);
  std::vector<CosSin> table(static_cast<std::size_t>(length * pairs));
  kernels::for_each_row(length, 32 * pairs, [&](std::int64_t t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(options.offset + t) * angles[static_cast<std::size_t>(i)];
      table[static_cast<std::size_t>(t * pairs + i)] = {std::cos(angle), std::sin(angle)};
    }
  });
  return table;
}

// Rotates the first r channels of a row. `step` leads from one pair to the next, and `apart` from the first
// channel of a pair to the second.
template <class T>
void rotate_row(const T* x, const CosSin* rotation, std::int64_t r, RotaryLayout layout, double direction,
                T* y) {
  const std::int64_t step = layout == RotaryLayout::halves ? 1 : 2;
  const std::int64_t apart = layout == RotaryLayout::halves ? r / 2 : 1;
  for (std::int64_t i = 0; i < r / 2; ++i) {
    const auto a = static_cast<double>(x[i * step]), b = static_cast<double>(x[i * step + apart]);
    const double cos = rotation[i].cos, sin = direction * rotation[i].sin;
    y[i * step] = static_cast<T>(a * cos - b * sin);
    y[i * step + apart] = static_cast<T>(a * sin + b * cos);
  }
}

// The transpose of a rotation, hence its gradient, is the rotation by the opposite angle.
Tensor rotate(const Tensor& x, const RotaryOptions& options, std::int64_t r, double direction) {
  const std::int64_t length = x.shape()[x.rank() - 2], d = x.shape().back();
  const detail::Rows rows(x.shape());
  const std::vector<CosSin> table = rotations(length, r, options);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&, flat = row_major(x)]<class T>() {
    kernels::for_each_row(rows.count, d, [&](std::int64_t row) {
      const T* in = flat.template data<T>() + row * d;
      T* out = detail::fresh_data<T>(y) + row * d;
      rotate_row(in, table.data() + row % length * (r / 2), r, options.layout, direction, out);
      std::copy(in + r, in + d, out + r);
    });
  });
  return record("rotary", y, {x}, {},
                [options, r, direction](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {rotate(dy, options, r, -direction)};
                });
}

}  // namespace

Tensor rotary(const Tensor& x, const RotaryOptions& options) {
  if (x.rank() < 2) {
    fail<ShapeError>("[rotary] x must be (..., T, D): its shape is {}", to_string(x.shape()));
  }
  if (!(options.base > 0 && std::isfinite(options.base))) {
    fail<ValueError>("[rotary] the base is {}: it must be above 0, 10000 say", options.base);
  }
  if (!(options.factor > 0 && std::isfinite(options.factor))) {
    fail<ValueError>("[rotary] the scaling factor is {}: it must be above 0, 2 for sequences twice as long",
                     options.factor);
  }
  return rotate(x, options, rotated_channels("rotary", x.shape().back(), options.dimensions), 1);
}

Tensor convert_rotary_layout(const Tensor& W, std::int64_t heads, RotaryLayout from, RotaryLayout to,
                             std::optional<std::int64_t> dimensions) {
  const std::int64_t width = W.rank() == 0 ? 0 : W.shape().back();
  if (heads < 1 || width == 0 || width % heads != 0) {
    fail<ShapeError>("[convert_rotary_layout] the last axis of W {} does not divide into {} heads",
                     to_string(W.shape()), heads);
  }
  const std::int64_t d = width / heads;
  const std::int64_t r = rotated_channels("convert_rotary_layout", d, dimensions);
  if (from == to) return W;
  Shape by_head = W.shape();
  by_head.back() = heads;
  by_head.push_back(d);
  // Halves are (2, R/2) channels, and adjacent pairs (R/2, 2).
  Shape pairs = by_head;
  pairs.back() = from == RotaryLayout::halves ? 2 : r / 2;
  pairs.push_back(from == RotaryLayout::halves ? r / 2 : 2);
  Shape rotated = by_head;
  rotated.back() = r;
  const Tensor heads_of_W = reshape(W, by_head);
  const Tensor reordered = reshape(transpose(reshape(slice(heads_of_W, -1, 0, r), pairs), -2, -1), rotated);
  return reshape(concat({reordered, slice(heads_of_W, -1, r, d)}, -1), W.shape());
}

}  // namespace fovea
