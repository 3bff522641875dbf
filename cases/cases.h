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

/// The table by which every op is checked, read by the tests and by `fovea check`.
///
/// To add an op: add a row to the family's file beside it (autograd/ops/<family>_cases.cpp):
///
///   cases.add("softplus", [](Case& c) {
///     c.input("x", {3, 5});
///     c.value = [](const Inputs& in) { return softplus(in["x"]); };
///     c.oracle = [](const Inputs& in) { return log(1 + exp(in["x"])); };
///   });
///
/// A row states only what is particular to its op. For every row, `check` adds: the value against the oracle
/// in f64 and f32; first, second and third derivatives against finite differences; f32 gradients against f64;
/// for inputs that are contiguous, transposed, sliced and broadcast, and axes of length 1 and 0; each input
/// alone requiring a gradient; the fused kernel against its composed twin; mixed dtypes; that inputs are not
/// changed, that nothing is left in memory, and that an input changed after its use is noticed.
///
/// All of that must hold for any draw of the inputs, so none may leave an input without influence, as a
/// maximum that is always the other: `fovea check --filter softplus --seeds 1000` tells.
namespace fovea {

/// Where the elements of an input are drawn from. All elements of a row's inputs from one domain differ by at
/// least (high - low) / 2 / the number of all elements, so that no maximum is tied and, by symmetry about 0,
/// no element is near it.
struct Domain {
  double low = -2;
  double high = 2;
};
inline constexpr Domain positive{0.3, 2.3};

/// The result for one particular input, in f64 and in f32. NaN equals NaN; zeros and infinities are exact.
struct Example {
  std::string name = {};
  std::vector<NamedTensor> inputs = {};  ///< f64
  std::vector<double> value = {};
  std::vector<double> cotangent = {};  ///< ones, if there is none
  /// By input. An input that is not named must have a finite gradient.
  std::vector<std::pair<std::string, std::vector<double>>> gradients = {};
  NamedFunction of = {};  ///< instead of the row's own value
};

/// A call that must throw.
struct ErrorCase {
  std::string name;
  std::string text;  ///< a piece of the error's text, which must start with a name in brackets
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

  std::string family;
  std::string name;

  /// Sizes greater than 1 are names of axes: where 5 stands twice, in one input or two, it is the same axis,
  /// and becomes 1 or 0 in both. Use different primes.
  void input(std::string input_name, const Shape& shape, Domain domain = {}) {
    inputs.push_back({std::move(input_name), shape, domain});
  }
  NamedFunction value;
  /// The same by an independent formula: other ops, or loops in double. It is only called with f64.
  NamedFunction oracle;

  /// The twin made of primitive ops, and the kernels that must run in `value` and its gradient but not in it.
  NamedFunction composed;
  std::optional<Kernel> kernel, backward_kernel;

  /// Axes that keep their size, and axes that may have size 1 but not 0.
  std::vector<std::int64_t> fixed_sizes, not_empty;
  /// False for integers and truth values dressed up as a tensor.
  bool differentiable = true;
  /// f32 values and gradients agree with f64 to this many roundings of the largest element (or of 1).
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

/// A list of rows that is being filled.
class Cases {
 public:
  explicit Cases(std::string family) : family_(std::move(family)) {}

  template <class Fill>
  void add(const std::string& name, const Fill& fill) {
    Case row;
    row.family = family_;
    row.name = name;
    fill(row);
    rows.push_back(std::move(row));
  }

  std::vector<Case> rows;

 private:
  std::string family_;
};

/// What `check` found out about a row.
struct CaseReport {
  std::int64_t elements = 0;     ///< compared with finite differences
  double worst = 0;              ///< relative error of gradients, as gradcheck has it
  std::string verdict = "pass";  ///< or that of the first failure: gradcheck's, "f32-drift", or "wrong"
  std::vector<std::string> failures;

  bool passed() const { return failures.empty(); }
};

struct CaseOptions {
  std::uint64_t seed = 1;  ///< of the inputs
  int order = 2;           ///< 1: derivatives of the first order only
};

/// Checks everything about a row. An exception inside it is a failure as well.
CaseReport check(const Case& row, const CaseOptions& options = {});

/// Every row of every family.
std::vector<Case> all_cases();
/// The rows of one family, which is the name of its file: "softmax". Throws: ValueError if there is none.
std::vector<Case> cases_of(const std::string& family);
std::vector<std::string> case_families();

/// For oracles: f of each element, in double; inputs are broadcast.
Tensor map_elements(const Tensor& x, const std::function<double(double)>& f);
Tensor map_elements(const Tensor& a, const Tensor& b, const std::function<double(double, double)>& f);

}  // namespace fovea
