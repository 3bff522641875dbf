#include "gradcheck/arguments.h"

#include <algorithm>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

// Says why moving one element of the tensor would move another, or is empty.
std::string overlap(const std::string& name, const Tensor& x) {
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (x.strides()[axis] == 0 && x.shape()[axis] > 1 && x.numel() > 0) {
      return fmt::format(
          "'{}' {} repeats along axis {}: its elements share memory, so none can be moved alone; check a "
          "clone",
          name, to_string(x.shape()), axis);
    }
  }
  return {};
}

std::string names_of(const std::vector<NamedTensor>& tensors) {
  std::string names;
  for (const NamedTensor& named : tensors) names += (names.empty() ? "" : ", ") + named.name;
  return names;
}

}  // namespace

std::string detail::first_overlap(const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, x] : tensors) {
    if (std::string why = overlap(name, x); !why.empty()) return why;
  }
  return {};
}

void detail::check_arguments(const std::vector<NamedTensor>& tensors, const GradcheckOptions& options) {
  if (options.order != 1 && options.order != 2) {
    fail<ValueError>("[gradcheck] order {} was asked for, and it must be 1 or 2", options.order);
  }
  if (!(options.tolerance > 0)) {
    fail<ValueError>("[gradcheck] tolerance {} was asked for, and it must be above 0", options.tolerance);
  }
  if (options.screen && (options.screen->directions < 1 || options.screen->elements < 0)) {
    fail<ValueError>(
        "[gradcheck] a screen of {} directions and {} elements was asked for: it needs at least one "
        "direction, "
        "and no fewer than 0 elements",
        options.screen->directions, options.screen->elements);
  }
  for (const std::string& name : options.expect_zero) {
    if (std::ranges::find(tensors, name, &NamedTensor::name) == tensors.end()) {
      fail<ValueError>("[gradcheck] expect_zero names '{}', and the inputs are: {}", name, names_of(tensors));
    }
  }
}

const Tensor& Inputs::operator[](std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
  if (found == tensors_.end()) {
    fail<ValueError>("[inputs] there is no input '{}': the inputs are {}", name, names_of(tensors_));
  }
  return found->tensor;
}

void detail::check_arity(std::size_t parameters, std::size_t inputs) {
  if (parameters == inputs) return;
  fail<ValueError>("[gradcheck] the function takes {} tensors, and {} inputs were given", parameters, inputs);
}

void detail::refuse_arity(std::size_t inputs) {
  fail<ValueError>("[gradcheck] the layer cannot be called with {} tensors", inputs);
}

}  // namespace fovea
