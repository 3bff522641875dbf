#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/graph/kernel_runs.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"

/// The table by which every op is checked. The tests and `fovea check` walk through it.
///
/// To add an op: write a row for it in the file of its family, cases/<family>_cases.cpp. CMake finds the
/// file.
///
///   void add_pointwise_cases(Cases& cases) {
///     cases.add("softplus", [](Case& c) {
///       c.input("x", {3, 5});
///       c.value = [](const Inputs& in) { return softplus(in["x"]); };
///       c.oracle = [](const Inputs& in) { return log(1 + exp(in["x"])); };
///     });
///   }
///
/// A row states only what is particular to its op. `check` adds, for every row: the value against the oracle
/// in f64 and f32; the first, second and third derivatives against finite differences; gradients in f32
/// against f64; inputs that are contiguous, transposed, sliced and broadcast, and axes of length 1 and 0;
/// each input alone requiring a gradient; the fused kernel against its reference form; inputs of mixed
/// dtypes. It also checks that no input is written to, that no memory is kept, and that an input which
/// changes after its use is noticed.
///
/// A row must pass for any draw of its inputs, so every input must always influence the value: the maximum of
/// `a` and a number above all of `a` would not do. `fovea check --filter softplus --seeds 1000` shows it.
namespace fovea {

/// The interval that the elements of an input are drawn from. All elements that a row draws from one domain
/// differ by at least (high - low) / (2 n), where n is the number of all elements of the row. So no maximum
/// is tied and, in an interval that is symmetric about 0, no element is close to 0.
struct Domain {
  double low = -2;
  double high = 2;
};
inline constexpr Domain positive{0.3, 2.3};

/// Given inputs and the value and gradients that they must give, in f64 and in f32. NaN equals NaN; zeros and
/// infinities must be exact.
struct Example {
  std::string name = {};
  std::vector<NamedTensor> inputs = {};  ///< f64
  std::vector<double> value = {};
  std::vector<double> cotangent = {};  ///< ones if it is empty
  /// The expected gradients by input. The gradient of an input that is not named only has to be finite.
  std::vector<std::pair<std::string, std::vector<double>>> gradients = {};
  NamedFunction of = {};  ///< called instead of the row's `value`
};

/// A call that must throw.
struct ErrorCase {
  std::string name;
  std::string text;  ///< what the error's text must contain; it must also start with a name in brackets
  std::function<void(const Inputs&)> call;
  std::function<bool(const Error&)> is_expected;
};

/// One op with one choice of options, and what must hold for it.
class Case {
 public:
  struct Input {
    std::string name;
    Shape shape;
    Domain domain;
  };

  std::string name;  ///< begins with the name of the op

  /// Adds an input. A size greater than 1 stands for an axis: the same size in two places, or in two inputs,
  /// is the same axis, and the checks of short axes set it to 1 or 0 in both. So use different primes.
  void input(std::string input_name, const Shape& shape, Domain domain = {}) {
    inputs.push_back({std::move(input_name), shape, domain});
  }
  NamedFunction value;
  /// The same value by an independent formula: other ops, or loops in double. It is called with f64 only.
  NamedFunction oracle;

  /// The reference form, made of primitive ops, and the fused kernels that must run in `value` and in its
  /// gradient but not in the reference form.
  NamedFunction reference;
  std::optional<std::string> kernel, backward_kernel;

  /// Axes, named by their sizes, that keep their size in the checks of short axes, and axes that may have
  /// size 1 but not 0.
  std::vector<std::int64_t> fixed_sizes, not_empty;
  /// False where the value consists of integers or truth values, held in a tensor.
  bool differentiable = true;
  /// Values and gradients in f32 differ from those in f64 by at most this many roundings of their largest
  /// element, or of 1 if that is larger.
  double f32_roundings = 32;

  void example(Example e) { examples.push_back(std::move(e)); }
  template <class ExpectedError, class Call>
  void refuses(std::string error_name, std::string text, Call call) {
    error_cases.push_back({std::move(error_name), std::move(text), [call](const Inputs& in) { call(in); },
                           [](const Error& e) { return dynamic_cast<const ExpectedError*>(&e) != nullptr; }});
  }

  std::vector<Input> inputs;
  std::vector<Example> examples;
  std::vector<ErrorCase> error_cases;
};

/// The rows of one file, while it adds them.
class Cases {
 public:
  template <class Fill>
  void add(const std::string& name, const Fill& fill) {
    Case row;
    row.name = name;
    fill(row);
    rows.push_back(std::move(row));
  }

  std::vector<Case> rows;
};

/// What `check` found for one row.
struct CaseReport {
  std::int64_t elements = 0;     ///< how many were compared with finite differences
  double worst = 0;              ///< the largest relative error of a gradient, as gradcheck defines it
  std::string verdict = "pass";  ///< or the verdict of the first failure: gradcheck's, "f32-drift" or "wrong"
  std::vector<std::string> failures;

  bool passed() const { return failures.empty(); }
};

struct CaseOptions {
  std::uint64_t seed = 1;  ///< of the inputs
  int order = 2;           ///< 1: check first derivatives only
};

/// Runs every check of a row. An exception that a check throws is a failure too.
CaseReport check(const Case& row, const CaseOptions& options = {});

/// The rows of every family.
std::vector<Case> all_cases();
/// The rows of one family, cases/<family>_cases.cpp. Throws: ValueError if there is no such file.
std::vector<Case> cases_of(const std::string& family);
std::vector<std::string> case_families();

/// For oracles: f of each element, in double. Two tensors are broadcast to one shape first.
Tensor map_elements(const Tensor& x, const std::function<double(double)>& f);
Tensor map_elements(const Tensor& a, const Tensor& b, const std::function<double(double, double)>& f);
/// For oracles: the f64 tensor whose element at a position is element(position).
Tensor tensor_from(const Shape& shape, const std::function<double(const Shape& position)>& element);

}  // namespace fovea
