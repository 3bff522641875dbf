#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/graph/derivatives.h"
#include "fovea/autograd/tensor/format.h"
#include "fovea/autograd/tensor/named_tensor.h"
#include "fovea/autograd/tensor/tensor.h"

/// Checks gradients against finite differences, element by element, in f64, with an estimate of the error of
/// each difference. docs/gradcheck.md explains how, and shows what it finds.
///
/// The output is contracted with a random cotangent w, never summed: the gradient of a summed softmax is
/// zero.
///
/// An element with analytic gradient a and numeric derivative n +- e passes if e <= limit and
/// |a - n| <= limit + e, where
///
///   limit = tolerance (|n| + 0.1 L) + s,
///   L = the largest |n| of the tensor, or a hundredth of its largest sum |w df/dx|, of terms that cancel,
///   s = 16 x how far the tensor's gradient, which is linear in w, moves at most when w is scaled by about
///       1 + 2^-30 and moved by 2^-50 of itself, and the gradient is scaled back: its own rounding.
///
/// A rule that says zero, |a| <= r with r = max(s, 1024 epsilon sum |w f| / max(1, |x|)), is held to what
/// rounding of f lets one see: |a - n| <= r + e, where e <= 100 tolerance r / (1024 epsilon). Where f moves
/// as far between the smallest steps as between the largest, and by more (N) than the rounding known of it,
/// which is 4 epsilon sum |w f| or, at order 2, what the first order measured, it is nothing but rounding: r
/// is at least 1024 N / max(1, |x|) then, and e <= 8 r.
///
/// Where nothing but `inconclusive` was found, another draw of w decides, of at most three: one may leave so
/// little of a derivative that rounding hides it.
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

/// A quick look at large tensors: derivatives along random directions instead of single elements.
struct Screen {
  int directions = 4;         ///< per tensor
  std::int64_t elements = 0;  ///< that are checked one by one as well, drawn at random, per tensor
};

struct GradcheckOptions {
  int order = 1;                      ///< 2: also differentiate the gradient, contracted with a random vector
  double tolerance = 1e-6;            ///< relative: see the formula above
  std::uint64_t seed = 1;             ///< of the cotangent, of directions and of the choice of elements
  bool jacobian = false;              ///< each element of the output by itself, instead of a random cotangent
  std::optional<Screen> screen = {};  ///< for tensors too large to check every element
  bool kinks_fail = false;
  /// Compare f32 values and gradients with f64 on the same inputs, where f runs in f32 too.
  bool compare_f32 = true;
  /// How many roundings of f32 its results may differ by, beyond what rounding the inputs does to them.
  double f32_roundings = 64;
  /// Tensors whose gradient may be zero throughout, or that may be empty.
  std::vector<std::string> expect_zero = {};
  /// Elements that are not checked, such as frozen rows: a tensor's name and leading indices, "table[0]".
  std::vector<std::string> exclude = {};
};

enum class Verdict {
  pass,
  kink,  ///< the slopes to the left and right differ, and the analytic value is one of them or between
  wrong,
  inconclusive,  ///< the error estimate of the numeric derivative exceeds the limit: not a pass
  non_finite,    ///< the function, its gradient or its derivative is not finite
  f32_drift,     ///< the f32 result is off by more than rounding explains
};
FOVEA_API const char* name_of(Verdict verdict);

/// One element that was compared.
struct ElementCheck {
  int order = 1;
  std::string input;
  Shape index;
  double analytic = 0;
  double numeric = 0;  ///< for f32_drift, what f64 gives
  double error = 0;    ///< estimated, of `numeric`; for f32_drift, what rounding explains
  Verdict verdict = Verdict::pass;
  /// The slopes on either side, where it is a kink.
  std::optional<double> left = {}, right = {};
  /// |analytic - numeric|, relative to what the limit is relative to: the tolerance is the most that it may
  /// be.
  double relative = 0;
  /// Of the output, in Jacobian mode. A direction of a screen has no index.
  std::optional<Shape> output = {};

  double difference() const { return analytic - numeric; }
};

/// One input as a whole. At order 2 the cotangent of the output is one of them.
struct TensorCheck {
  int order = 1;
  std::string input;
  Shape shape;
  std::int64_t elements = 0;  ///< how many were compared, or directions
  double largest = 0;         ///< |numeric|
  ElementCheck worst = {};    ///< by `relative`
  /// Every gradient is zero or no element was compared, and `expect_zero` does not name it.
  bool vacuous = false;
  /// What its wrong elements look like: "analytic = 1.001 x numeric". Empty if nothing known.
  std::string hint = {};
};

struct GradcheckReport {
  double tolerance = 0;
  std::uint64_t seed = 0;
  bool screened = false;
  bool kinks_fail = false;
  std::int64_t elements = 0;     ///< how many were checked, or directions
  std::int64_t evaluations = 0;  ///< of the function or its gradient
  double seconds = 0;
  std::vector<TensorCheck> tensors = {};
  std::vector<ElementCheck> failures = {};  ///< every element that failed, worst first
  std::vector<ElementCheck> kinks = {};     ///< every kink, unless `kinks_fail`
  std::string not_deterministic = {};       ///< where two passes over the same inputs differ
  std::string aliased = {};                 ///< why nothing was checked: an input overlaps itself
  std::string f32 = {};                     ///< why f32 was not compared; empty if it was, or was not asked

  bool passed() const;
  explicit operator bool() const { return passed(); }
  /// In a word: "pass", "kink" (a pass), or the gravest of what is wrong: "aliased", "not deterministic",
  /// "wrong", "non-finite", "inconclusive", "f32-drift", "kink" where kinks fail, "vacuous".
  std::string verdict() const;
  /// The largest `relative` of any tensor: what the tolerance limits.
  double worst() const;
};

/// A summary line and a table: of the elements that failed and the kinks, worst first, at most `rows`; if
/// there are none, of the worst element of each tensor. With hints.
FOVEA_API std::string to_string(const GradcheckReport& report, std::size_t rows = 20);
/// The whole report as a JSON object. Numbers that are not finite are strings: "nan", "inf", "-inf".
FOVEA_API std::string to_json(const GradcheckReport& report);
/// So that `CHECK(gradcheck(f, x))` prints the table when it fails, in Catch2 and its like.
FOVEA_API std::ostream& operator<<(std::ostream& out, const GradcheckReport& report);

/// Checks d f / d each input. The inputs are copied to f64; the caller's tensors stay as they are.
/// f must be deterministic and keep to the dtype of its inputs.
/// Throws: ValueError for an order other than 1 and 2, or if `expect_zero` or `exclude` names nothing there
/// is.
FOVEA_API GradcheckReport gradcheck(const NamedFunction& f, const Inputs& inputs,
                                    const GradcheckOptions& options = {});

/// The same for a function of one tensor, which the report calls x.
FOVEA_API GradcheckReport gradcheck(const Function& f, const Tensor& x, const GradcheckOptions& options = {});

namespace detail {
template <class F>
concept FunctionOfTensors = !std::invocable<const F&, const Inputs&>;

FOVEA_API void check_arity(std::size_t parameters, std::size_t inputs);
[[noreturn]] FOVEA_API void refuse_arity(std::size_t inputs);

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
template <detail::FunctionOfTensors F>
GradcheckReport gradcheck(const F& f, const Inputs& inputs, const GradcheckOptions& options = {}) {
  return gradcheck(NamedFunction([&f](const Inputs& in) { return detail::call_in_order(f, in); }), inputs,
                   options);
}

/// Checks d f / d each tensor, where f reads the tensors from wherever they are, such as a layer's
/// parameters. Each element is moved in place and restored. f32 is not compared.
///
/// Throws: as gradcheck; DtypeError if a tensor is not f64.
FOVEA_API GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f,
                                             const std::vector<NamedTensor>& tensors,
                                             const GradcheckOptions& options = {});

namespace detail {
/// Tensors, and the function that reads them.
struct Subject {
  std::function<Tensor()> f;
  std::vector<NamedTensor> tensors;
};
/// Sets the same up anew, in a dtype.
using MakeSubject = std::function<Subject(Dtype)>;

FOVEA_API GradcheckReport gradcheck_subject(const MakeSubject& make, const GradcheckOptions& options);
}  // namespace detail

/// Checks that two functions agree, in value and in the gradient of every input, such as a fused kernel and
/// the formula made of primitive ops; at order 2 also in second derivatives. They may differ by
/// `roundings` of f64 of the largest element. In the report `numeric` is what `expected` gives.
FOVEA_API GradcheckReport compare_functions(const NamedFunction& f, const NamedFunction& expected,
                                            const Inputs& inputs, const GradcheckOptions& options = {},
                                            double roundings = 4096);

}  // namespace fovea

/// fmt::print("{}", report)
template <>
struct fmt::formatter<fovea::GradcheckReport> : fovea::detail::Printable<fovea::GradcheckReport> {};
