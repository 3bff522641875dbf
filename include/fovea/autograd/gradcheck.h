#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/autograd/derivatives.h"
#include "fovea/autograd/named_tensor.h"
#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/format.h"

/// Checks gradients against finite differences, element by element, in f64.
///
/// Every element of every input is moved up and down by steps that shrink until the central differences,
/// extrapolated to step 0 (Richardson), agree with each other; that gives a derivative and an estimate of its
/// error. The output is contracted with a random cotangent, never summed: the gradient of a summed softmax is
/// zero.
///
/// An element passes if |analytic - numeric| <= tolerance * max(1, largest |numeric| of its tensor).
namespace fovea {

/// Tensors by name, in the order they were given: `in["x"]`.
class FOVEA_API Inputs {
 public:
  Inputs(std::initializer_list<NamedTensor> tensors) : tensors_(tensors) {}
  explicit Inputs(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}

  /// Throws: ValueError, saying which names there are.
  const Tensor& operator[](std::string_view name) const;

  std::size_t size() const { return tensors_.size(); }
  const Tensor& at(std::size_t i) const { return tensors_.at(i).tensor; }
  std::vector<NamedTensor>::const_iterator begin() const { return tensors_.begin(); }
  std::vector<NamedTensor>::const_iterator end() const { return tensors_.end(); }

 private:
  std::vector<NamedTensor> tensors_;
};

using NamedFunction = std::function<Tensor(const Inputs&)>;

struct GradcheckOptions {
  int order = 1;            ///< 2: also differentiate the gradient, contracted with a random vector
  double tolerance = 1e-6;  ///< relative to max(1, largest |numeric| of the tensor)
  std::uint64_t seed = 1;   ///< of the random cotangent
  /// Inputs whose gradient may be zero throughout, or that may be empty.
  std::vector<std::string> expect_zero = {};
};

enum class Verdict {
  pass,
  wrong,         ///< the difference exceeds the tolerance, or one of the two is not finite
  inconclusive,  ///< the error estimate of the numeric derivative exceeds the tolerance; not a pass
};
FOVEA_API const char* name_of(Verdict verdict);

/// One element that did not pass.
struct ElementCheck {
  int order = 1;
  std::string input;
  Shape index;
  double analytic = 0;
  double numeric = 0;
  double error = 0;  ///< estimated, of `numeric`
  Verdict verdict = Verdict::pass;

  double difference() const { return analytic - numeric; }
};

/// One input as a whole. At order 2 the cotangent of the output is one of them.
struct TensorCheck {
  int order = 1;
  std::string input;
  Shape shape;
  double largest = 0;  ///< |numeric|
  double worst = 0;    ///< |analytic - numeric|
  /// Every gradient is zero or there is no element, and `expect_zero` does not name it.
  bool vacuous = false;
};

struct GradcheckReport {
  double tolerance = 0;
  std::int64_t elements = 0;     ///< how many were checked
  std::int64_t evaluations = 0;  ///< of the function or its gradient
  std::vector<TensorCheck> tensors = {};
  std::vector<ElementCheck> failures = {};  ///< every element that did not pass, worst first

  bool passed() const;
  /// The largest |analytic - numeric| / max(1, largest |numeric|) of any tensor: what the tolerance limits.
  double worst() const;
};

/// A summary line and, if it did not pass, a table of the failures, the first `rows` of them.
FOVEA_API std::string to_string(const GradcheckReport& report, std::size_t rows = 100);

/// Checks d f / d each input. The inputs are copied to f64; the caller's tensors stay as they are.
/// f must be deterministic and keep to f64 when its inputs do.
/// Throws: ValueError for an order other than 1 and 2, or if `expect_zero` names no input.
FOVEA_API GradcheckReport gradcheck(const NamedFunction& f, const Inputs& inputs,
                                    const GradcheckOptions& options = {});

/// The same for a function of one tensor, which the report calls x.
FOVEA_API GradcheckReport gradcheck(const Function& f, const Tensor& x, const GradcheckOptions& options = {});

namespace detail {
FOVEA_API void check_arity(std::size_t parameters, std::size_t inputs);

// Calls f with as many of the inputs as it takes.
template <class F, class... Taken>
Tensor call_in_order(const F& f, const Inputs& in, const Taken&... taken) {
  if constexpr (std::invocable<const F&, const Taken&...>) {
    check_arity(sizeof...(taken), in.size());
    return f(taken...);
  } else {
    static_assert(sizeof...(taken) < 16, "gradcheck: a function of Tensors, or of one Inputs, is expected");
    return call_in_order(f, in, taken..., sizeof...(taken) < in.size() ? in.at(sizeof...(taken)) : Tensor());
  }
}
}  // namespace detail

/// The same for a function of one or several tensors, which are the inputs in their order:
/// `gradcheck(softplus, {{"x", x}})`.
///
/// Throws: also ValueError if there are more or fewer inputs than it takes.
template <class F>
requires(!std::invocable<const F&, const Inputs&>) GradcheckReport
    gradcheck(const F& f, const Inputs& inputs, const GradcheckOptions& options = {}) {
  return gradcheck(NamedFunction([&f](const Inputs& in) { return detail::call_in_order(f, in); }), inputs,
                   options);
}

/// Checks d f / d each tensor, where f reads the tensors from wherever they are, such as a layer's
/// parameters. Each element is moved in place and restored.
///
/// Throws: as gradcheck; DtypeError if a tensor is not f64; ValueError if one overlaps itself in memory.
FOVEA_API GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f,
                                             const std::vector<NamedTensor>& tensors,
                                             const GradcheckOptions& options = {});

}  // namespace fovea

/// fmt::print("{}", report)
template <>
struct fmt::formatter<fovea::GradcheckReport> : fovea::detail::Printable<fovea::GradcheckReport> {};
