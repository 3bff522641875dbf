#include <algorithm>
#include <set>

#include "cases/case_inputs.h"
#include "cases/findings.h"
#include "fovea/autograd/base/memory.h"

namespace fovea {

using cases::Arranged;
using cases::Arrangement;
using cases::arrangements;
using cases::contiguous_arrangement;
using cases::draw;
using cases::f32_rounding;
using cases::f64_tolerance;
using cases::random_cotangent;
using cases::Zeros;

namespace {

// All checks of one row.
class Checker {
 public:
  Checker(const Case& row, const CaseOptions& options)
      : row_(row), options_(options), drawn_(draw(row, options.seed)) {}

  CaseReport run() {
    for (const Arrangement& arrangement : arrangements(row_.inputs.size())) {
      findings_.about(arrangement.name, [&] {
        check_arrangement(drawn_, arrangement, arrangement.name != contiguous_arrangement().name);
      });
    }
    findings_.about("sizes", [&] { check_sizes(); });
    if (row_.differentiable) {
      if (options_.order == 2) findings_.about("third derivatives", [&] { check_third_derivatives(); });
      findings_.about("one input at a time", [&] { check_each_input_alone(); });
      findings_.about("under create_graph", [&] { check_create_graph(); });
      findings_.about("an input changed after its use", [&] { check_changed_input(); });
    }
    findings_.about("inputs", [&] { check_inputs_are_not_written(); });
    findings_.about("memory", [&] { check_memory(); });
    findings_.about("dtypes", [&] { check_mixed_dtypes(); });
    if (row_.reference) findings_.about("reference form", [&] { check_reference(); });
    for (const Example& example : row_.examples)
      findings_.about(example.name, [&] { check_example(example); });
    for (const ErrorCase& error : row_.error_cases) findings_.about(error.name, [&] { check_error(error); });
    return std::move(findings_.report);
  }

 private:
  void expect_equal_gradients(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                              double tolerance) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      findings_.expect_equal("gradient of " + row_.inputs[i].name, actual[i], expected[i], tolerance);
    }
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (const Case::Input& input : row_.inputs) names.push_back(input.name);
    return names;
  }

  double tolerance_of(Dtype dtype) const {
    return dtype == f64 ? f64_tolerance : row_.f32_roundings * f32_rounding;
  }

  // The value and its derivatives for one arrangement of the inputs in memory. An arrangement is `degenerate`
  // if it repeats values or has an axis of length 1 or 0: an input may then have no influence, as under a
  // maximum, and gradients may be the small remainder of large terms, which f32 rounds.
  void check_arrangement(const std::vector<NamedTensor>& drawn, const Arrangement& arrangement,
                         bool degenerate) {
    Arranged wide(drawn, arrangement, f64), narrow(drawn, arrangement, f32);
    std::vector<NamedTensor> copies;
    for (const auto& [name, x] : wide.view()) copies.push_back({name, clone(x)});
    const Tensor expected = row_.oracle(Inputs(copies));
    findings_.expect_equal("value", row_.value(wide.view()), expected, f64_tolerance);
    const Tensor rounded = row_.value(narrow.view());
    findings_.expect_equal("value", rounded, expected, tolerance_of(f32));
    if (rounded.dtype() != f32) findings_.fail_with("the value of f32 inputs is not f32");
    if (!row_.differentiable) return;

    const GradcheckReport checked = gradcheck(
        [&](const Inputs& leaves) {
          return row_.value(wide.view({leaves.begin(), leaves.end()}));
        },
        Inputs(wide.leaves),
        {.order = options_.order,
         .seed = options_.seed,
         .compare_f32 = false,  // compared below, to the limit of this row
         .expect_zero = degenerate ? input_names() : std::vector<std::string>()});
    findings_.report.elements += checked.elements;
    findings_.report.worst = std::max(findings_.report.worst, checked.worst());
    if (!checked.passed()) findings_.fail_with("derivatives " + to_string(checked, 10), checked.verdict());
    expect_equal_gradients(narrow.gradients(row_.value), wide.gradients(row_.value),
                           (degenerate ? 32 : 1) * tolerance_of(f32));
  }

  // Each axis with length 1 and with length 0, where gradients may vanish.
  void check_sizes() {
    std::set<std::int64_t> sizes;
    for (const Case::Input& input : row_.inputs) sizes.insert(input.shape.begin(), input.shape.end());
    sizes.erase(1);
    const auto is_in = [](const std::vector<std::int64_t>& list, std::int64_t size) {
      return std::ranges::find(list, size) != list.end();
    };
    for (const std::int64_t size : sizes) {
      if (is_in(row_.fixed_sizes, size)) continue;
      for (const std::int64_t other : {1, 0}) {
        if (other == 0 && is_in(row_.not_empty, size)) continue;
        findings_.about(fmt::format("the axis of size {} made {}", size, other), [&] {
          check_arrangement(draw(row_, options_.seed, {size, other}), contiguous_arrangement(), true);
        });
      }
    }
  }

  // The gradient is a function of the inputs and of the cotangent. It is differentiated twice, which finds a
  // rule whose own gradient leaves one of them out.
  void check_third_derivatives() {
    Arranged arranged(drawn_, contiguous_arrangement(), f64);
    std::vector<NamedTensor> inputs = arranged.leaves;
    inputs.push_back({"cotangent of the value", random_cotangent(row_.value(arranged.view()))});
    std::vector<std::string> expect_zero;
    for (const NamedTensor& input : inputs) expect_zero.push_back(input.name);
    const auto gradient = [&](const Inputs& in) {
      std::vector<Tensor> targets;
      for (const NamedTensor& input : in) targets.push_back(input.tensor);
      const Tensor cotangent = targets.back();
      targets.pop_back();
      const Tensor y = row_.value(arranged.view(std::span(&*in.begin(), targets.size())));
      std::vector<Tensor> parts;
      for (const Tensor& part :
           grad({y}, targets, {.gradients = {cotangent}, .create_graph = true, .allow_unused = true})) {
        parts.push_back(reshape(part, {-1}));
      }
      return concat(parts, 0);
    };
    const GradcheckReport checked =
        gradcheck(NamedFunction(gradient), Inputs(inputs),
                  {.order = 2, .seed = options_.seed, .compare_f32 = false, .expect_zero = expect_zero});
    findings_.report.worst = std::max(findings_.report.worst, checked.worst());
    if (!checked.passed()) findings_.fail_with(to_string(checked, 10), checked.verdict());
  }

  // A rule must give an input the same gradient whether or not other inputs need one.
  void check_each_input_alone() {
    if (row_.inputs.size() < 2) return;
    const std::vector<Tensor> all = Arranged(drawn_, contiguous_arrangement(), f64).gradients(row_.value);
    for (std::size_t i = 0; i < row_.inputs.size(); ++i) {
      Arranged alone(drawn_, contiguous_arrangement(), f64);
      alone.leaves[i].tensor.set_requires_grad();
      const Tensor y = row_.value(alone.view());
      const Tensor gradient = grad({y}, {alone.leaves[i].tensor}, {.gradients = {random_cotangent(y)}})[0];
      findings_.expect_equal(row_.inputs[i].name, gradient, all[i], f64_tolerance);
    }
  }

  void check_create_graph() {
    for (const Dtype dtype : {f32, f64}) {
      expect_equal_gradients(Arranged(drawn_, contiguous_arrangement(), dtype).gradients(row_.value, true),
                             Arranged(drawn_, contiguous_arrangement(), dtype).gradients(row_.value),
                             tolerance_of(dtype));
    }
  }

  // Either the gradient does not depend on the changed input, or the engine reports that it was changed.
  void check_changed_input() {
    for (std::size_t i = 0; i < row_.inputs.size(); ++i) {
      Arranged arranged(drawn_, contiguous_arrangement(), f64);
      std::vector<Tensor> targets = arranged.targets();
      const Tensor y = row_.value(arranged.view());
      const GradOptions options{
          .gradients = {random_cotangent(y)}, .retain_graph = true, .allow_unused = true};
      const std::vector<Tensor> before = grad({y}, targets, options);
      double* data = targets[i].mutable_data<double>();
      for (std::int64_t k = 0; k < targets[i].numel(); ++k) data[k] = 0.75 * data[k] + 0.125;
      try {
        expect_equal_gradients(grad({y}, targets, options), before, 0);
      } catch (const GraphError& e) {
        if (std::string(e.what()).find("was changed after it was used") == std::string::npos) throw;
      }
    }
  }

  void check_inputs_are_not_written() {
    for (const Arrangement& arrangement : arrangements(row_.inputs.size())) {
      Arranged arranged(drawn_, arrangement, f64);
      std::vector<Tensor> before;
      for (const NamedTensor& leaf : arranged.leaves) before.push_back(clone(leaf.tensor));
      if (row_.differentiable) arranged.gradients(row_.value, true);
      if (row_.differentiable) arranged.gradients(row_.value);
      row_.value(arranged.view());
      for (std::size_t i = 0; i < before.size(); ++i) {
        const auto& [name, leaf] = arranged.leaves[i];
        findings_.expect_equal(name, leaf, before[i], 0);
        if (leaf.version() != 0)
          findings_.fail_with(fmt::format("input {} was written to ({})", name, arrangement.name));
      }
    }
  }

  // A node that owns itself would never be freed.
  void check_memory() {
    const auto work = [&] {
      if (!row_.differentiable)
        return (void)row_.value(Arranged(drawn_, contiguous_arrangement(), f32).view());
      Arranged(drawn_, contiguous_arrangement(), f32).gradients(row_.value);
      Arranged(drawn_, contiguous_arrangement(), f32).gradients(row_.value, true);
      // A graph that no backward pass has freed must be freed as well.
      Arranged unused(drawn_, contiguous_arrangement(), f32);
      unused.targets();
      row_.value(unused.view());
    };
    work();
    const std::int64_t before = memory().live_bytes;
    work();
    const std::int64_t kept = memory().live_bytes - before;
    if (kept != 0)
      findings_.fail_with(
          fmt::format("{} bytes are still live after the value and its graph are gone", kept));
  }

  void check_mixed_dtypes() {
    if (row_.inputs.size() < 2) return;
    for (std::size_t i = 0; i < row_.inputs.size(); ++i) {
      std::vector<NamedTensor> mixed = drawn_;
      mixed[i].tensor = to(mixed[i].tensor, f32);
      try {
        row_.value(Inputs(mixed));
        findings_.fail_with(
            fmt::format("{} is f32 and the others are f64, and nothing was thrown", mixed[i].name));
      } catch (const DtypeError& e) {
        const std::string text = e.what();
        if (text.find("f32") == std::string::npos || text.find("f64") == std::string::npos) {
          findings_.fail_with("the error for mixed dtypes does not name both: " + text);
        }
      }
    }
  }

  static std::int64_t count(const std::optional<std::string>& kernel) {
    return kernel ? runs_of(*kernel) : 0;
  }

  // The fused kernels must run in the value and its gradient, and in nothing else, and agree with the
  // reference.
  void check_reference() {
    for (const Dtype dtype : {f32, f64}) {
      const double tolerance = tolerance_of(dtype);
      const std::int64_t forward = count(row_.kernel), backward = count(row_.backward_kernel);
      Arranged reference(drawn_, contiguous_arrangement(), dtype);
      const Tensor expected = row_.reference(reference.view());
      const std::vector<Tensor> expected_gradients = reference.gradients(row_.reference);
      if (count(row_.kernel) != forward || count(row_.backward_kernel) != backward) {
        findings_.fail_with("the fused kernel ran in the reference form");
      }
      Arranged fused(drawn_, contiguous_arrangement(), dtype);
      const Tensor value = row_.value(fused.view());
      const std::vector<Tensor> gradients = fused.gradients(row_.value);
      if (row_.kernel && count(row_.kernel) == forward) findings_.fail_with("the fused kernel did not run");
      const std::int64_t after = count(row_.backward_kernel);
      if (row_.backward_kernel && after == backward)
        findings_.fail_with("the fused kernel of the gradient did not run");
      fused.gradients(row_.value, true);
      if (count(row_.backward_kernel) != after)
        findings_.fail_with(
            "the fused kernel of the gradient ran under create_graph, where no rule can differentiate it");
      findings_.expect_equal("value", value, expected, tolerance);
      expect_equal_gradients(gradients, expected_gradients, tolerance);
    }
  }

  void check_example(const Example& example) {
    for (const Dtype dtype : {f64, f32}) {
      const double tolerance = tolerance_of(dtype);
      Arranged arranged(example.inputs, contiguous_arrangement(), dtype);
      std::vector<Tensor> targets = arranged.targets();
      const Tensor y = (example.of ? example.of : row_.value)(arranged.view());
      findings_.expect_equal("value", y, from_values(example.value, y.shape(), f64), tolerance, Zeros::exact);
      if (!row_.differentiable) continue;
      const Tensor cotangent = example.cotangent.empty() ? ones(y.shape(), dtype)
                                                         : from_values(example.cotangent, y.shape(), dtype);
      for (const bool create_graph : {false, true}) {
        const std::vector<Tensor> gradients = grad({y}, targets,
                                                   {.gradients = {cotangent},
                                                    .retain_graph = true,
                                                    .create_graph = create_graph,
                                                    .allow_unused = true});
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          check_example_gradient(example, arranged.leaves[i].name, gradients[i], tolerance);
        }
      }
    }
  }

  void check_example_gradient(const Example& example, const std::string& input, const Tensor& gradient,
                              double tolerance) {
    for (const auto& [name, expected] : example.gradients) {
      if (name != input) continue;
      return findings_.expect_equal("gradient of " + name, gradient,
                                    from_values(expected, gradient.shape(), f64), tolerance, Zeros::exact);
    }
    if (!all(is_finite(gradient)))
      findings_.fail_with("the gradient of " + input + " is not finite: " + to_string(gradient));
  }

  void check_error(const ErrorCase& error) {
    try {
      error.call(Inputs(drawn_));
      findings_.fail_with("nothing was thrown");
    } catch (const Error& e) {
      const std::string text = e.what();
      if (!error.is_expected(e)) findings_.fail_with("it threw the wrong kind of error: " + text);
      if (text.empty() || text[0] != '[' || text.find(error.text) == std::string::npos) {
        findings_.fail_with(fmt::format("the error should start with a name in brackets and contain '{}': {}",
                                        error.text, text));
      }
    }
  }

  const Case& row_;
  CaseOptions options_;
  std::vector<NamedTensor> drawn_;
  cases::Findings findings_;
};

}  // namespace

CaseReport check(const Case& row, const CaseOptions& options) { return Checker(row, options).run(); }

}  // namespace fovea
