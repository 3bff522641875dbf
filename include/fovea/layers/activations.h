#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

/// Activations: as layers without parameters, for `Sequential`, and as an enum, for the options of a layer.
/// Shapes: x (...) -> the same.
namespace fovea {

/// x Phi(x) (Hendrycks & Gimpel 2016); `Gelu{.tanh = true}` is GPT-2's approximation.
struct FOVEA_API Gelu {
  bool tanh = false;
  Tensor operator()(const Tensor& x) const { return gelu(x, {.tanh = tanh}); }
  static void visit(const Gelu&, Visitor&) {}
};

/// x sigmoid(x) (Elfwing et al. 2017).
struct FOVEA_API Silu {
  Tensor operator()(const Tensor& x) const { return silu(x); }
  static void visit(const Silu&, Visitor&) {}
};

/// max(x, 0).
struct FOVEA_API Relu {
  Tensor operator()(const Tensor& x) const { return relu(x); }
  static void visit(const Relu&, Visitor&) {}
};

enum class Activation : std::uint8_t { gelu, gelu_tanh, silu, relu };

/// Throws: ValueError for a value outside the enum.
FOVEA_API Tensor activate(Activation activation, const Tensor& x);

}  // namespace fovea
