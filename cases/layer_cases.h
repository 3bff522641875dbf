#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/gradcheck/layer_gradcheck.h"

/// The table by which every layer is checked, read by the tests and by `fovea check`.
///
/// To add a layer: add a row to cases/layer_cases.cpp, with the layer and an input of different primes:
///
///   cases.add("Linear", Linear(5, 3, rng), randn({2, 7, 5}, rng));
///
/// Every row compares the gradients of all parameters and of the input with finite differences, at both
/// orders, and what it does in f32 with f64.
namespace fovea {

struct LayerCase {
  std::string name;
  std::function<GradcheckReport(const GradcheckOptions&)> check;
};

/// A list of rows that is being filled.
class LayerCases {
 public:
  /// expect_zero: parameters whose gradient is zero by nature, such as the bias of attention's keys.
  template <Layer L, class Input>
  void add(const std::string& name, const L& layer, const Input& x,
           std::vector<std::string> expect_zero = {}) {
    rows.push_back({name, [layer, x, expect_zero = std::move(expect_zero)](GradcheckOptions options) {
                      options.expect_zero = expect_zero;
                      return gradcheck(layer, x, options);
                    }});
  }

  std::vector<LayerCase> rows;
};

std::vector<LayerCase> layer_cases();

}  // namespace fovea
