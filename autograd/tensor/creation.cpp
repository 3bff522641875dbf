#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {
namespace {

// A tensor whose elements are value(0), value(1), ... in row-major order.
template <class F>
Tensor generate(const Shape& shape, Dtype dtype, F value) {
  Tensor x = empty(shape, dtype);
  dispatch(dtype, [&]<class T>() {
    T* data = detail::fresh_data<T>(x);
    const std::int64_t n = x.numel();
    for (std::int64_t i = 0; i < n; ++i) data[i] = static_cast<T>(value(i));
  });
  return x;
}

}  // namespace

Tensor empty(const Shape& shape, Dtype dtype) {
  detail::Ref<detail::TensorImpl> impl(new detail::TensorImpl);
  impl->dtype = dtype;
  impl->buffer = detail::Buffer::allocate(shape, size_of(dtype));
  impl->shape = shape;
  impl->strides = contiguous_strides(shape);
  return detail::TensorAccess::handle(std::move(impl));
}

Tensor full(const Shape& shape, double value, Dtype dtype) {
  Tensor x = empty(shape, dtype);
  dispatch(dtype,
           [&]<class T>() { std::fill_n(detail::fresh_data<T>(x), x.numel(), static_cast<T>(value)); });
  return x;
}

Tensor zeros(const Shape& shape, Dtype dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, Dtype dtype) { return full(shape, 1, dtype); }
Tensor scalar(double value, Dtype dtype) { return full({}, value, dtype); }

Tensor from_values(std::span<const double> values, const Shape& shape, Dtype dtype) {
  if (static_cast<std::int64_t>(values.size()) != numel(shape)) {
    fail<ShapeError>("[from_values] {} values for shape {}, which holds {}", values.size(), to_string(shape),
                     numel(shape));
  }
  return generate(shape, dtype, [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
}

Tensor tensor(const NestedList<double>& values, Dtype dtype) {
  std::vector<double> elements;
  values.append_to(elements);
  return from_values(elements, values.shape("tensor"), dtype);
}

Tensor arange(Integer n, Dtype dtype) {
  return generate({n}, dtype, [](std::int64_t i) { return static_cast<double>(i); });
}

Tensor eye(Integer size, Dtype dtype) {
  const std::int64_t n = size;
  return generate({n, n}, dtype, [n](std::int64_t i) { return i / n == i % n ? 1.0 : 0.0; });
}

Tensor randn(const Shape& shape, Rng& rng, Dtype dtype) {
  return generate(shape, dtype, [&](std::int64_t) { return rng.normal(); });
}

Tensor uniform(const Shape& shape, Rng& rng, double low, double high, Dtype dtype) {
  if (!(low <= high)) fail<ValueError>("[uniform] the bounds [{}, {}) are not in order", low, high);
  // Rounding to f32 may reach `high`, which is not in the range.
  const double largest = dispatch(dtype, [&]<class T>() -> double {
    if (!std::isfinite(static_cast<T>(low)) || !std::isfinite(static_cast<T>(high))) {
      fail<ValueError>("[uniform] the bounds [{}, {}) are not finite in {}", low, high, name_of(dtype));
    }
    return std::nextafter(static_cast<T>(high), static_cast<T>(low));
  });
  // A range that is too large for f64 is drawn from at half its size.
  const double unit = std::isfinite(high - low) ? 1 : 2;
  const double from = low / unit, range = high / unit - from;
  return generate(shape, dtype,
                  [&](std::int64_t) { return std::min(unit * (from + range * rng.uniform()), largest); });
}

}  // namespace fovea
