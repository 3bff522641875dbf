#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/activations.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/visit.h"

namespace fovea {

struct FeedForwardOptions {
  Activation activation = Activation::gelu;
  bool bias = true;
};

/// The position-wise feed-forward network (Vaswani et al. 2017, section 3.3), usually with F = 4 C:
///   y = activation(x W_up + b_up) W_down + b_down.
///
/// Shapes: x (..., C) -> the same, by way of (..., F). Throws: ValueError if a size is below 1.
/// Taps: "hidden" (..., F), which W_down multiplies.
struct FOVEA_API FeedForward {
  Linear up;    ///< C to F
  Linear down;  ///< F to C
  Activation activation;

  FeedForward(std::int64_t d_model, std::int64_t d_hidden, Rng& rng, const FeedForwardOptions& options = {});

  Tensor operator()(const Tensor& x) const;

  static void visit(const FeedForward& self, Visitor& v) {
    v("up", self.up);
    v("down", self.down);
  }
};

struct GatedFeedForwardOptions {
  Activation activation = Activation::silu;  ///< silu gives SwiGLU, gelu gives GEGLU
};

/// The gated feed-forward network of Shazeer 2020, with the names that Llama gives its weights:
///   y = (activation(x W1) * (x W3)) W2.
///
/// With F = 8/3 C it has as many parameters as a FeedForward with F = 4 C. The initial weights are uniform in
/// +-1/sqrt(number of rows).
/// Shapes: x (..., C) -> the same, by way of (..., F). Throws: ValueError if a size is below 1.
/// Taps: "hidden" (..., F), which W2 multiplies.
struct FOVEA_API GatedFeedForward {
  Tensor W1, W3;  ///< (C, F): of the gate and of the values
  Tensor W2;      ///< (F, C)
  Activation activation;

  GatedFeedForward(std::int64_t d_model, std::int64_t d_hidden, Rng& rng,
                   const GatedFeedForwardOptions& options = {});

  Tensor operator()(const Tensor& x) const;

  static void visit(const GatedFeedForward& self, Visitor& v) {
    v("W1", self.W1);
    v("W2", self.W2);
    v("W3", self.W3);
  }
};

}  // namespace fovea
