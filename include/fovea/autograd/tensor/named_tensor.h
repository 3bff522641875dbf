#pragma once

#include <string>

#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// A tensor and what it is called: a layer's parameter by its full name, an input of a check.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace fovea
