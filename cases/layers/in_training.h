#pragma once

#include "fovea/autograd/graph/modes.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// A layer in training mode, whose dropout draws the same numbers in every call.
template <Layer L>
struct InTraining {
  L layer;

  template <class Input>
  Tensor operator()(const Input& x) const {
    const TrainMode scope(7);
    return layer(x);
  }
  static void visit(const InTraining& self, Visitor& v) { v("layer", self.layer); }
};

}  // namespace fovea
