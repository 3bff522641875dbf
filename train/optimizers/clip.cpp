#include "fovea/train/optimizers/clip.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/base/fail.h"
#include "autograd/base/parallel.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

constexpr std::int64_t chunk_size = 1 << 14;

struct NamedGradient {
  const NamedTensor* parameter;
  Tensor gradient;  // row-major
};

std::vector<NamedGradient> gradients_of(const std::vector<NamedTensor>& parameters) {
  std::vector<NamedGradient> gradients;
  for (const NamedTensor& parameter : parameters) {
    const Tensor gradient = parameter.tensor.grad();
    if (gradient.defined()) gradients.push_back({&parameter, contiguous(gradient.detach())});
  }
  return gradients;
}

// The sum of (scale x)^2 in f64. Each chunk is summed in eight lanes, and chunks are added in order.
template <class T>
double sum_of_squares(const T* x, std::int64_t n, double scale) {
  std::vector<double> sums(static_cast<std::size_t>((n + chunk_size - 1) / chunk_size));
  kernels::parallel_for(n, chunk_size, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t lanes = 8;
    double lane[lanes] = {};
    const auto add = [&](std::int64_t k, std::int64_t i) {
      const double value = scale * static_cast<double>(x[i]);
      lane[k] += value * value;
    };
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) add(k, i + k);
    }
    for (std::int64_t k = 0; i + k < end; ++k) add(k, i + k);
    sums[static_cast<std::size_t>(begin / chunk_size)] = std::accumulate(lane, lane + lanes, 0.0);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double sum_of_squares(const std::vector<NamedGradient>& gradients, double scale) {
  double total = 0;
  for (const NamedGradient& named : gradients) {
    const Tensor& g = named.gradient;
    dispatch(g.dtype(), [&]<class T>() { total += sum_of_squares(g.data<T>(), g.numel(), scale); });
  }
  return total;
}

// The largest absolute value of all. Throws: NonFiniteError at the first element that is not finite.
double largest_of(const std::vector<NamedGradient>& gradients) {
  double largest = 0;
  for (const auto& [parameter, gradient] : gradients) {
    for (const double value : gradient.to_vector()) {
      if (!std::isfinite(value)) {
        fail<NonFiniteError>(
            "[clip_gradients] the gradient of '{}', shape {}, holds {}: skip this step, or find the op that "
            "produces it with an Anomaly scope",
            parameter->name, to_string(gradient.shape()), value);
      }
      largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

double norm_of(const std::vector<NamedGradient>& gradients) {
  const double squares = sum_of_squares(gradients, 1);
  if (std::isfinite(squares) && squares > 1e-280) return std::sqrt(squares);
  // An element is not finite, or squares leave the range of f64. A power of two brings them back exactly.
  const double largest = largest_of(gradients);
  if (largest == 0) return 0;
  const double scale = std::ldexp(1.0, std::min(1000, -std::ilogb(largest)));
  const double norm = std::sqrt(sum_of_squares(gradients, scale)) / scale;
  if (std::isinf(norm))
    fail<NonFiniteError>("[clip_gradients] the norm overflows f64: the largest element is {}", largest);
  return norm;
}

Tensor scaled(const Tensor& gradient, double factor) {
  Tensor result = empty(gradient.shape(), gradient.dtype());
  dispatch(gradient.dtype(), [&]<class T>() {
    const T* from = gradient.data<T>();
    T* to = detail::fresh_data<T>(result);
    kernels::parallel_for(gradient.numel(), chunk_size, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = static_cast<T>(static_cast<double>(from[i]) * factor);
    });
  });
  return result;
}

}  // namespace

double clip_gradients(const std::vector<NamedTensor>& parameters, double max_norm) {
  if (!(max_norm >= 0)) fail<ValueError>("[clip_gradients] max_norm is {}: it must be 0 or more", max_norm);
  std::vector<NamedGradient> gradients = gradients_of(parameters);
  const double norm = norm_of(gradients);
  if (norm <= max_norm) return norm;
  // The results are new arrays, because other handles may share the old ones. All are computed before the
  // first is set, so that a failed allocation changes nothing.
  for (auto& [parameter, gradient] : gradients) gradient = scaled(gradient, max_norm / norm);
  for (const auto& [parameter, gradient] : gradients) parameter->tensor.set_grad(gradient);
  return norm;
}

}  // namespace fovea
