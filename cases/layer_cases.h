#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/layer_gradcheck.h"

/// The table by which every layer is checked. The tests and `fovea check` walk through it.
///
/// To add a layer: write a row for it in cases/layers/<name>_cases.cpp, where include/fovea/layers/<name>.h
/// declares the layer. CMake finds the file. The sizes in a row are different primes.
///
///   void add_linear_cases(LayerCases& cases) {
///     cases.add("Linear", Linear(5, 3, cases.rng), randn({2, 7, 5}, cases.rng));
///   }
///
/// A row compares the gradients of all parameters and of the input with finite differences, to the first or
/// second order, and the value and gradients in f32 with those in f64.
namespace fovea {

struct LayerCase {
  std::string name;  ///< begins with the name of the layer
  std::function<GradcheckReport(const GradcheckOptions&)> check;
};

/// The rows of one file, while it adds them.
class LayerCases {
 public:
  /// expect_zero: parameters whose gradient is zero for every input, such as the bias of attention's keys.
  template <Layer L, class Input>
  void add(const std::string& name, const L& layer, const Input& x,
           std::vector<std::string> expect_zero = {}) {
    rows.push_back({name, [layer, x, expect_zero = std::move(expect_zero)](GradcheckOptions options) {
                      options.expect_zero = expect_zero;
                      return gradcheck(layer, x, options);
                    }});
  }

  std::vector<LayerCase> rows;
  Rng rng{1};  ///< draws the parameters and inputs of this file's rows
};

/// The rows of every file.
std::vector<LayerCase> all_layer_cases();
/// The rows of one file, which is named without its ending: "linear". Throws: ValueError if it does not
/// exist.
std::vector<LayerCase> layer_cases_of(const std::string& file);

}  // namespace fovea
