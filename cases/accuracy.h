#pragma once

#include <cstdint>
#include <vector>

#include "fovea/autograd/tensor/tensor.h"

/// How far the values of elementwise functions are from the exact ones.
namespace fovea {

/// An elementwise function, and its exact value and slope, limits at infinity included: in double, which is
/// exact enough to judge f32, and in long double, to judge f64.
struct ElementwiseFunction {
  const char* name;
  Tensor (*of)(const Tensor&);
  double (*value)(double);
  double (*slope)(double);
  long double (*long_value)(long double);
  long double (*long_slope)(long double);
};

/// Every elementwise function, and losses as functions of one logit or prediction.
const std::vector<ElementwiseFunction>& elementwise_functions();

/// The difference between a number of type T and the exact result, in units in the last place (ulp) of the
/// exact one; positive where the magnitude is too large. 0 where both are NaN or the same infinity, infinite
/// where only one is. T is float or double.
template <class T>
double ulps_between(double found, long double exact);

struct Accuracy {
  std::int64_t count = 0;
  double mean = 0;      ///< of the signed errors, in ulp
  double worst = 0;     ///< the largest magnitude of an error, in ulp
  double worst_at = 0;  ///< the argument there
};

/// Compares the function with its exact values at every `step`-th number of f32, infinities included.
Accuracy accuracy_in_f32(const ElementwiseFunction& function, std::int64_t step);
/// At `count` numbers of f64: half of them from -40 to 40, and half spread over all magnitudes.
Accuracy accuracy_in_f64(const ElementwiseFunction& function, std::int64_t count);

}  // namespace fovea
