#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Layers applied one after another, each to the output of the one before:
///   Sequential mlp(Linear(5, 7, rng), Gelu{}, Linear(7, 3, rng));
///
/// Its parameters are named by the layers' indices: "0.W", "0.b", "2.W", "2.b". The first layer may take ids.
template <Layer... Layers>
struct Sequential {
  static_assert(sizeof...(Layers) > 0, "a Sequential needs at least one layer");

  std::tuple<Layers...> layers;

  explicit Sequential(Layers... in_order) : layers(std::move(in_order)...) {}

  template <class Input>
  Tensor operator()(const Input& x) const {
    return run<0>(x);
  }

  static void visit(const Sequential& self, Visitor& v) {
    std::int64_t index = 0;
    std::apply([&](const auto&... layer) { (v(std::to_string(index++), layer), ...); }, self.layers);
  }

 private:
  template <std::size_t index, class Input>
  Tensor run(const Input& x) const {
    if constexpr (index + 1 == sizeof...(Layers)) {
      return std::get<index>(layers)(x);
    } else {
      return run<index + 1>(std::get<index>(layers)(x));
    }
  }
};

}  // namespace fovea
