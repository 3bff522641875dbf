#include "autograd/graph/anomaly.h"

#include <cmath>

#include "autograd/base/fail.h"
#include "autograd/base/position.h"
#include "autograd/kernels/strided.h"

namespace fovea::detail {
namespace {

// Describes the first element for which test(value) holds; empty if there is none.
template <class Test>
std::string find(const Tensor& x, Test test) {
  std::string found;
  std::int64_t element = 0;
  dispatch(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    kernels::for_each_offset(x.shape(), x.strides(), [&](std::int64_t offset) {
      if (found.empty() && test(data[offset])) {
        found = fmt::format("{} at {}", data[offset], to_string(position_of(element, x.shape())));
      }
      ++element;
    });
  });
  return found;
}

std::string find_nan(const Tensor& x) {
  return find(x, [](auto value) { return std::isnan(value); });
}

}  // namespace

std::string find_nonfinite(const Tensor& x) {
  return find(x, [](auto value) { return !std::isfinite(value); });
}

void check_finite(const char* op, std::span<const Tensor> values, TensorRefs inputs) {
  for (const Tensor& value : values) {
    const std::string found = find_nonfinite(value);
    if (found.empty()) continue;
    bool infinite_input = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& input = inputs[i];
      if (!input.defined()) continue;
      if (const std::string nan_input = find_nan(input); !nan_input.empty()) {
        fail<NonFiniteError>("[{}] its input {}, shape {}, is not finite: {}", op, i,
                             to_string(input.shape()), nan_input);
      }
      infinite_input = infinite_input || !find_nonfinite(input).empty();
    }
    if (infinite_input && find_nan(value).empty()) continue;
    fail<NonFiniteError>("[{}] its value, shape {}, turned non-finite: {}", op, to_string(value.shape()),
                         found);
  }
}

}  // namespace fovea::detail
