#include "fovea/autograd/base/shape.h"

#include <algorithm>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

[[noreturn]] void refuse_shape(const Shape& shape) {
  if (shape.size() > most_axes) {
    fail<ShapeError>("[shape] {} axes were asked for: a shape has at most {}", shape.size(), most_axes);
  }
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {
    fail<ShapeError>("[shape] {} has a negative size", to_string(shape));
  }
  fail<ShapeError>("[shape] {} has more elements than an array can have, 2^58: look for a size that is wrong",
                   to_string(shape));
}

}  // namespace

std::int64_t numel(const Shape& shape) {
  std::int64_t product = 1;
  bool empty = false;
  bool fits = shape.size() <= most_axes;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    fits = fits && size >= 0 && !__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product);
  }
  if (!fits || product > most_elements) refuse_shape(shape);
  return empty ? 0 : product;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

std::int64_t normalize_axis(const char* op, std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n) {
    if (n == 0) fail<ShapeError>("[{}] axis {} asked of a scalar, which has none", op, axis);
    fail<ShapeError>("[{}] axis {} is out of range for rank {}: use {} to {}", op, axis, n, -n, n - 1);
  }
  return axis < 0 ? axis + n : axis;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank, 1);
  for (std::size_t back = 1; back <= rank; ++back) {
    const std::int64_t of_a = back <= a.size() ? a[a.size() - back] : 1;
    const std::int64_t of_b = back <= b.size() ? b[b.size() - back] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      fail<ShapeError>("[{}] shapes {} and {} do not broadcast: {} against {} at axis -{}", op, to_string(a),
                       to_string(b), of_a, of_b, back);
    }
    result[rank - back] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

std::string to_string(const Shape& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

}  // namespace fovea
