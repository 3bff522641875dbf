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
/// each difference. docs/gradcheck.md explains the method and shows what it finds.
///
/// The output of f is contracted with a random cotangent w. It is never summed, because the gradient of a sum
/// may be zero whatever the rule says, as for a softmax.
///
/// An element with the analytic gradient a and the numeric derivative n +- e passes if e <= limit and
/// |a - n| <= limit + e, where
///
///   limit = tolerance (|n| + 0.1 L) + s.
///
/// L is the largest |n| of the tensor, or a hundredth of its largest sum |w df/dx| if that is larger, as the
/// terms of this sum may cancel. s is the rounding of the gradient: it is linear in w, so it is computed
/// again for a w that is scaled by about 1 + 2^-30 and moved by about 2^-50 of itself, and scaled back. s is
/// 16 times the largest move of any element of the tensor.
///
/// Where the rule gives zero, the rounding of f limits what can be seen. That is where |a| <= r, with
/// r = max(s, 1024 epsilon sum |w f| / max(1, |x|)). The element then passes if |a - n| <= r + e and
/// e <= 100 tolerance r / (1024 epsilon). A function may be nothing but rounding. It then moves as far
/// between the smallest steps as between the largest, by some N that exceeds its known rounding (4 epsilon
/// sum |w f| or, at order 2, what the first order measured). There r is at least 1024 N / max(1, |x|), and e
/// may be up to 8 r.
///
/// A random w may leave so little of a derivative that rounding hides it. So where every failure is
/// `inconclusive`, w is drawn again, up to three times in all.
namespace fovea {

/// Named tensors, in the order in which they were given: `in["x"]`.
class FOVEA_API Inputs {
 public:
  Inputs(std::initializer_list<NamedTensor> tensors) : tensors_(tensors) {}
  explicit Inputs(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}

  /// Throws: ValueError if there is no input of that name; the error lists the names.
  const Tensor& operator[](std::string_view name) const;

  std::size_t size() const { return tensors_.size(); }
  const Tensor& at(std::size_t i) const { return tensors_.at(i).tensor; }
  std::vector<NamedTensor>::const_iterator begin() const { return tensors_.begin(); }
  std::vector<NamedTensor>::const_iterator end() const { return tensors_.end(); }

 private:
  std::vector<NamedTensor> tensors_;
};

using NamedFunction = std::function<Tensor(const Inputs&)>;

/// A quick check of large tensors: it compares derivatives along random directions instead of single
/// elements.
struct Screen {
  int directions = 4;         ///< how many directions, per tensor
  std::int64_t elements = 0;  ///< how many randomly drawn elements are checked as well, per tensor
};

struct GradcheckOptions {
  int order = 1;                      ///< 2: also check the gradient of the gradient, times a random vector
  double tolerance = 1e-6;            ///< relative, as in the formula above
  std::uint64_t seed = 1;             ///< of the random cotangent, directions and choice of elements
  bool jacobian = false;              ///< check each element of the output by itself, without a random w
  std::optional<Screen> screen = {};  ///< set it for tensors that are too large to check every element
  bool kinks_fail = false;            ///< count a kink as a failure
  /// Compare the value and gradients in f32 with those in f64 for the same inputs, if f accepts f32.
  bool compare_f32 = true;
  /// How many f32 roundings a result may be off by, beyond the effect of rounding the inputs.
  double f32_roundings = 64;
  /// Tensors that may have a gradient of zero in every element, or no elements.
  std::vector<std::string> expect_zero = {};
  /// Elements that are not checked, such as a frozen row: the name of a tensor and leading indices,
  /// "table[0]".
  std::vector<std::string> exclude = {};
};

enum class Verdict {
  pass,
  kink,          ///< the slopes on the two sides differ, and the analytic gradient is one or between them
  wrong,         ///< the analytic gradient and the numeric derivative differ by more than their limit
  inconclusive,  ///< the error estimate of the numeric derivative exceeds the limit, which is not a pass
  non_finite,    ///< the function, its gradient or its derivative is NaN or infinite
  f32_drift,     ///< the f32 result differs from the f64 result by more than rounding explains
};
FOVEA_API const char* name_of(Verdict verdict);

/// One element that was compared.
struct ElementCheck {
  int order = 1;
  std::string input;
  Shape index;  ///< empty for a direction of a screen
  double analytic = 0;
  double numeric = 0;  ///< for f32_drift, the result in f64
  double error = 0;    ///< the estimated error of `numeric`; for f32_drift, what rounding explains
  Verdict verdict = Verdict::pass;
  /// The slopes on the two sides, for a kink.
  std::optional<double> left = {}, right = {};
  /// |analytic - numeric| times tolerance / limit: above the tolerance, the difference is above the limit.
  double relative = 0;
  /// The element of the output, in Jacobian mode.
  std::optional<Shape> output = {};

  double difference() const { return analytic - numeric; }
};

/// The result for one input. At order 2 the cotangent of the output is an input too.
struct TensorCheck {
  int order = 1;
  std::string input;
  Shape shape;
  std::int64_t elements = 0;  ///< how many elements or directions were compared
  double largest = 0;         ///< the largest |numeric|
  ElementCheck worst = {};    ///< the element with the largest `relative`
  /// Every gradient is zero or no element was compared, and `expect_zero` does not name the input.
  bool vacuous = false;
  /// The pattern of the wrong elements, such as "analytic = 1.001 x numeric". Empty if none is recognised.
  std::string hint = {};
};

struct FOVEA_API GradcheckReport {
  double tolerance = 0;
  std::uint64_t seed = 0;
  bool screened = false;
  bool kinks_fail = false;
  std::int64_t elements = 0;     ///< how many elements or directions were checked
  std::int64_t evaluations = 0;  ///< how often the function or its gradient was computed
  double seconds = 0;
  std::vector<TensorCheck> tensors = {};
  std::vector<ElementCheck> failures = {};  ///< every element that failed, the worst first
  std::vector<ElementCheck> kinks = {};     ///< every kink, unless `kinks_fail`
  std::string not_deterministic = {};       ///< says where two passes over the same inputs differ
  std::string aliased = {};                 ///< says whose elements share memory, so that nothing was checked
  std::string f32 = {};                     ///< says why f32 was not compared, though it was asked for

  bool passed() const;
  explicit operator bool() const { return passed(); }
  /// The result in a word: "pass", "kink" (which passes), or the first of these that applies: "aliased",
  /// "not deterministic", "wrong", "non-finite", "inconclusive", "f32-drift", "kink" (if kinks fail),
  /// "vacuous".
  std::string verdict() const;
  /// The largest `relative` of any tensor.
  double worst() const;
};

/// A summary line, a table, and hints. The table lists the elements that failed and the kinks, the worst
/// first, in at most `rows` rows. If there are none, it lists the worst element of each tensor.
FOVEA_API std::string to_string(const GradcheckReport& report, std::size_t rows = 20);
/// The whole report as a JSON object, in which NaN and infinity are the strings "nan", "inf" and "-inf".
FOVEA_API std::string to_json(const GradcheckReport& report);
/// Prints to_string(report), so that a failing `CHECK(gradcheck(f, x))` of a test framework shows the table.
FOVEA_API std::ostream& operator<<(std::ostream& out, const GradcheckReport& report);

/// Checks the gradient of f with respect to every input. The inputs are copied to f64, and the caller's
/// tensors stay as they are. f must be deterministic, and compute in the dtype of its inputs. Throws:
/// ValueError for an option out of range, or if `expect_zero` or `exclude` names what does not exist.
FOVEA_API GradcheckReport gradcheck(const NamedFunction& f, const Inputs& inputs,
                                    const GradcheckOptions& options = {});

/// The same for a function of one tensor, which is named x in the report.
FOVEA_API GradcheckReport gradcheck(const Function& f, const Tensor& x, const GradcheckOptions& options = {});

namespace detail {
template <class F>
concept FunctionOfTensors = !std::invocable<const F&, const Inputs&>;

// Whether f can be called with some number of Tensors, up to 15, and nothing else.
template <class F, class... Taken>
constexpr bool takes_tensors_alone() {
  if constexpr (std::invocable<const F&, const Taken&...>) {
    return true;
  } else if constexpr (sizeof...(Taken) < 15) {
    return takes_tensors_alone<F, Taken..., Tensor>();
  } else {
    return false;
  }
}
template <class F>
constexpr bool check_takes_tensors_alone() {
  static_assert(takes_tensors_alone<F>(),
                "gradcheck: f must take Tensors alone, or one Inputs. A function that is passed by its name "
                "loses its default arguments, so write [](const Tensor& x) { return softmax(x); }, not "
                "softmax; what is not a Tensor, such as Indices or an axis, is given inside the lambda.");
  return takes_tensors_alone<F>();
}

FOVEA_API void check_arity(std::size_t parameters, std::size_t inputs);
[[noreturn]] FOVEA_API void refuse_arity(std::size_t inputs);

// Calls f with the first inputs, as many as it takes. Throws: ValueError if these are not all inputs.
template <class F, class... Taken>
Tensor call_in_order(const F& f, const Inputs& in, const Taken&... taken) {
  if constexpr (std::invocable<const F&, const Taken&...>) {
    check_arity(sizeof...(taken), in.size());
    return f(taken...);
  } else {
    return call_in_order(f, in, taken..., sizeof...(taken) < in.size() ? in.at(sizeof...(taken)) : Tensor());
  }
}

using Unary = Tensor(const Tensor&);
using Binary = Tensor(const Tensor&, const Tensor&);
}  // namespace detail

/// The same for a function of one or more tensors, which are the inputs in order:
/// `gradcheck(softplus, {{"x", x}})`.
///
/// Throws: as above, and ValueError if the number of inputs is not the number of tensors that f takes.
template <detail::FunctionOfTensors F>
GradcheckReport gradcheck(const F& f, const Inputs& inputs, const GradcheckOptions& options = {}) {
  if constexpr (detail::check_takes_tensors_alone<F>()) {
    return gradcheck(NamedFunction([&f](const Inputs& in) { return detail::call_in_order(f, in); }), inputs,
                     options);
  }
}
template <class... Parameters>
GradcheckReport gradcheck(Tensor (*f)(Parameters...), const Tensor& x, const GradcheckOptions& options = {}) {
  if constexpr (detail::check_takes_tensors_alone<decltype(f)>()) return gradcheck(f, {{"x", x}}, options);
}

/// The same for a function whose name is overloaded, such as `sum` or `maximum`: the overload of one tensor,
/// or of two, is meant.
inline GradcheckReport gradcheck(detail::Unary& f, const Inputs& inputs,
                                 const GradcheckOptions& options = {}) {
  return gradcheck<detail::Unary*>(&f, inputs, options);
}
inline GradcheckReport gradcheck(detail::Binary& f, const Inputs& inputs,
                                 const GradcheckOptions& options = {}) {
  return gradcheck<detail::Binary*>(&f, inputs, options);
}
inline GradcheckReport gradcheck(detail::Unary& f, const Tensor& x, const GradcheckOptions& options = {}) {
  return gradcheck(Function(f), x, options);
}

/// Checks the gradient of f with respect to tensors that f reads by itself, such as the parameters of a
/// layer. Each element is changed in place and restored. f32 is not compared.
///
/// Throws: as gradcheck, and DtypeError if a tensor is not f64.
FOVEA_API GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f,
                                             const std::vector<NamedTensor>& tensors,
                                             const GradcheckOptions& options = {});

namespace detail {
/// A function, and the tensors that it reads.
struct Subject {
  std::function<Tensor()> f;
  std::vector<NamedTensor> tensors;
};
/// Makes a new subject with the same numbers, in a dtype.
using MakeSubject = std::function<Subject(Dtype)>;

FOVEA_API GradcheckReport gradcheck_subject(const MakeSubject& make, const GradcheckOptions& options);
}  // namespace detail

/// Checks that two functions agree in value and in the gradient of every input, and at order 2 in second
/// derivatives. One may be a fused kernel and the other its reference form. An element may differ by
/// `roundings` times the f64 rounding of the largest element. In the report, `numeric` is the result of
/// `expected`.
FOVEA_API GradcheckReport compare_functions(const NamedFunction& f, const NamedFunction& expected,
                                            const Inputs& inputs, const GradcheckOptions& options = {},
                                            double roundings = 4096);

}  // namespace fovea

/// fmt::print("{}", report)
template <>
struct fmt::formatter<fovea::GradcheckReport> : fovea::detail::Printable<fovea::GradcheckReport> {};
