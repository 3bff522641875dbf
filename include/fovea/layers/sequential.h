#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Layers one after another, each given what the one before returned:
///   Sequential mlp(Linear(5, 7, rng), Gelu{}, Linear(7, 3, rng));
///
/// The names of its members are their places: "0.W", "0.b", "2.W", "2.b". The first may take ids.
template <Layer... Layers>
requires(sizeof...(Layers) > 0) struct Sequential {
  std::tuple<Layers...> layers;

  explicit Sequential(Layers... in_order) : layers(std::move(in_order)...) {}

  template <class Input>
  Tensor operator()(const Input& x) const {
    return run<0>(x);
  }

  static void visit(const Sequential& self, Visitor& v) {
    std::int64_t place = 0;
    std::apply([&](const auto&... layer) { (v(std::to_string(place++), layer), ...); }, self.layers);
  }

 private:
  template <std::size_t place, class Input>
  Tensor run(const Input& x) const {
    if constexpr (place + 1 == sizeof...(Layers)) {
      return std::get<place>(layers)(x);
    } else {
      return run<place + 1>(std::get<place>(layers)(x));
    }
  }
};

}  // namespace fovea
