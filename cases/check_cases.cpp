#include <algorithm>
#include <cmath>
#include <set>

#include "cases/case_inputs.h"
#include "fovea/autograd/base/memory.h"

namespace fovea {

using cases::Arranged;
using cases::Arrangement;
using cases::arrangements;
using cases::contiguous_arrangement;
using cases::draw;
using cases::random_cotangent;

namespace {

// f64 values and their oracles, and two ways to one gradient, differ by a few roundings of intermediate
// results.
constexpr double f64_tolerance = 1e-12;
constexpr double f32_rounding = 0x1p-24;

enum class Zeros { near, exact };

bool agree(double actual, double expected, double limit, Zeros zeros) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (expected == 0 && zeros == Zeros::exact) return actual == 0;
  return actual == expected || std::abs(actual - expected) <= limit;
}

// Says where two tensors differ by more than tolerance * max(1, largest |expected|); empty if they don't.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance, Zeros zeros) {
  if (actual.shape() != expected.shape()) {
    return fmt::format("shape {}, expected {}", to_string(actual.shape()), to_string(expected.shape()));
  }
  const std::vector<double> a = actual.to_vector(), e = expected.to_vector();
  double largest = 1;
  for (const double value : e) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  std::string text;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (agree(a[i], e[i], tolerance * largest, zeros)) continue;
    if (++wrong == 1) {
      text = fmt::format("element {} of {} is {:.17g}, expected {:.17g}", i, to_string(actual.shape()), a[i],
                         e[i]);
    }
  }
  if (wrong > 1) text += fmt::format(", and {} more differ", wrong - 1);
  return text;
}

// Collects what is wrong with one row.
class Checker {
 public:
  Checker(const Case& row, const CaseOptions& options)
      : row_(row), options_(options), drawn_(draw(row, options.seed)) {}

  CaseReport run() {
    for (const Arrangement& arrangement : arrangements(row_.inputs.size())) {
      about(arrangement.name, [&] {
        check_arrangement(drawn_, arrangement, arrangement.name != contiguous_arrangement().name);
      });
    }
    about("sizes", [&] { check_sizes(); });
    if (row_.differentiable) {
      if (options_.order == 2) about("third derivatives", [&] { check_third_derivatives(); });
      about("one input at a time", [&] { check_needs(); });
      about("under create_graph", [&] { check_create_graph(); });
      about("an input changed after its use", [&] { check_changed_input(); });
    }
    about("inputs", [&] { check_inputs_stay(); });
    about("memory", [&] { check_memory(); });
    about("dtypes", [&] { check_mixed_dtypes(); });
    if (row_.composed) about("composed twin", [&] { check_twin(); });
    for (const Example& special : row_.examples) about(special.name, [&] { check_special(special); });
    for (const ErrorCase& refusal : row_.error_cases) about(refusal.name, [&] { check_refusal(refusal); });
    return std::move(report_);
  }

 private:
  void fail_with(const std::string& text, const std::string& verdict = "wrong") {
    if (report_.passed()) report_.verdict = verdict;
    report_.failures.push_back(fmt::format("{}: {}", subject_, text));
  }

  void expect_equal(const std::string& what, const Tensor& actual, const Tensor& expected, double tolerance,
                    Zeros zeros = Zeros::near) {
    const std::string found = difference(actual, expected, tolerance, zeros);
    if (!found.empty()) {
      fail_with(fmt::format("{} {}: {}", name_of(actual.dtype()), what, found),
                actual.dtype() == f32 ? "f32-drift" : "wrong");
    }
  }

  void expect_equal(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                    double tolerance) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      expect_equal("gradient of " + row_.inputs[i].name, actual[i], expected[i], tolerance);
    }
  }

  template <class F>
  void about(const std::string& subject, const F& f) {
    subject_ = subject;
    try {
      f();
    } catch (const std::exception& e) {
      fail_with(std::string("it threw ") + e.what());
    }
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (const Case::Input& input : row_.inputs) names.push_back(input.name);
    return names;
  }

  double f32_tolerance() const { return row_.f32_roundings * f32_rounding; }

  // Value and derivatives for one arrangement of inputs in memory. Repeated values and short axes are
  // `degenerate`: an input may lose its influence there (a maximum), and gradients cancel to much less than
  // their f32 terms.
  void check_arrangement(const std::vector<NamedTensor>& drawn, const Arrangement& arrangement,
                         bool degenerate) {
    Arranged wide(drawn, arrangement, f64), narrow(drawn, arrangement, f32);
    std::vector<NamedTensor> copies;
    for (const auto& [name, x] : wide.view()) copies.push_back({name, clone(x)});
    const Tensor expected = row_.oracle(Inputs(copies));
    expect_equal("value", row_.value(wide.view()), expected, f64_tolerance);
    const Tensor rounded = row_.value(narrow.view());
    expect_equal("value", rounded, expected, f32_tolerance());
    if (rounded.dtype() != f32) fail_with("the value of f32 inputs is not f32");
    if (!row_.differentiable) return;

    const GradcheckReport checked = gradcheck(
        [&](const Inputs& leaves) {
          return row_.value(wide.view({leaves.begin(), leaves.end()}));
        },
        Inputs(wide.leaves),
        {.order = options_.order,
         .seed = options_.seed,
         .compare_f32 = false,  // below, with the row's own limit
         .expect_zero = degenerate ? input_names() : std::vector<std::string>()});
    report_.elements += checked.elements;
    report_.worst = std::max(report_.worst, checked.worst());
    if (!checked.passed()) fail_with("derivatives " + to_string(checked, 10), checked.verdict());
    expect_equal(narrow.gradients(row_.value), wide.gradients(row_.value),
                 (degenerate ? 32 : 1) * f32_tolerance());
  }

  // Each axis with length 1, and with length 0. Gradients may vanish then.
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
        about(fmt::format("the axis of size {} made {}", size, other), [&] {
          check_arrangement(draw(row_, options_.seed, {size, other}), contiguous_arrangement(), true);
        });
      }
    }
  }

  // The gradient, as a function of inputs and cotangent, is differentiated twice: a rule that loses sight of
  // either in its own gradient is found here.
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
    report_.worst = std::max(report_.worst, checked.worst());
    if (!checked.passed()) fail_with(to_string(checked, 10), checked.verdict());
  }

  // A rule must give the same to an input whether or not others need a gradient too.
  void check_needs() {
    if (row_.inputs.size() < 2) return;
    const std::vector<Tensor> all = Arranged(drawn_, contiguous_arrangement(), f64).gradients(row_.value);
    for (std::size_t i = 0; i < row_.inputs.size(); ++i) {
      Arranged alone(drawn_, contiguous_arrangement(), f64);
      alone.leaves[i].tensor.set_requires_grad();
      const Tensor y = row_.value(alone.view());
      const Tensor gradient = grad({y}, {alone.leaves[i].tensor}, {.gradients = {random_cotangent(y)}})[0];
      expect_equal(row_.inputs[i].name, gradient, all[i], f64_tolerance);
    }
  }

  void check_create_graph() {
    for (const Dtype dtype : {f32, f64}) {
      expect_equal(Arranged(drawn_, contiguous_arrangement(), dtype).gradients(row_.value, true),
                   Arranged(drawn_, contiguous_arrangement(), dtype).gradients(row_.value),
                   dtype == f64 ? f64_tolerance : f32_tolerance());
    }
  }

  // Either the rule does not use the changed values, or it says that they changed.
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
        expect_equal(grad({y}, targets, options), before, 0);
      } catch (const GraphError& e) {
        if (std::string(e.what()).find("was changed after it was used") == std::string::npos) throw;
      }
    }
  }

  void check_inputs_stay() {
    for (const Arrangement& arrangement : arrangements(row_.inputs.size())) {
      Arranged arranged(drawn_, arrangement, f64);
      std::vector<Tensor> before;
      for (const NamedTensor& leaf : arranged.leaves) before.push_back(clone(leaf.tensor));
      if (row_.differentiable) arranged.gradients(row_.value, true);
      if (row_.differentiable) arranged.gradients(row_.value);
      row_.value(arranged.view());
      for (std::size_t i = 0; i < before.size(); ++i) {
        const auto& [name, leaf] = arranged.leaves[i];
        expect_equal(name, leaf, before[i], 0);
        if (leaf.version() != 0)
          fail_with(fmt::format("input {} was written to ({})", name, arrangement.name));
      }
    }
  }

  // A node that keeps itself alive is never freed.
  void check_memory() {
    const auto work = [&] {
      if (!row_.differentiable)
        return (void)row_.value(Arranged(drawn_, contiguous_arrangement(), f32).view());
      Arranged(drawn_, contiguous_arrangement(), f32).gradients(row_.value);
      Arranged(drawn_, contiguous_arrangement(), f32).gradients(row_.value, true);
      // And a graph that no backward pass has freed.
      Arranged unused(drawn_, contiguous_arrangement(), f32);
      unused.targets();
      row_.value(unused.view());
    };
    work();
    const std::int64_t before = memory().live_bytes;
    work();
    const std::int64_t kept = memory().live_bytes - before;
    if (kept != 0) fail_with(fmt::format("{} bytes are still live when all is gone", kept));
  }

  void check_mixed_dtypes() {
    if (row_.inputs.size() < 2) return;
    for (std::size_t i = 0; i < row_.inputs.size(); ++i) {
      std::vector<NamedTensor> mixed = drawn_;
      mixed[i].tensor = to(mixed[i].tensor, f32);
      try {
        row_.value(Inputs(mixed));
        fail_with(fmt::format("{} is f32 and the others f64, and nothing was thrown", mixed[i].name));
      } catch (const DtypeError& e) {
        const std::string text = e.what();
        if (text.find("f32") == std::string::npos || text.find("f64") == std::string::npos) {
          fail_with("the error for mixed dtypes does not name both: " + text);
        }
      }
    }
  }

  static std::int64_t count(const std::optional<Kernel>& kernel) { return kernel ? runs_of(*kernel) : 0; }

  void check_twin() {
    for (const Dtype dtype : {f32, f64}) {
      const double tolerance = dtype == f64 ? f64_tolerance : f32_tolerance();
      const std::int64_t forward = count(row_.kernel), backward = count(row_.backward_kernel);
      Arranged twin(drawn_, contiguous_arrangement(), dtype);
      const Tensor expected = row_.composed(twin.view());
      const std::vector<Tensor> expected_gradients = twin.gradients(row_.composed);
      if (count(row_.kernel) != forward || count(row_.backward_kernel) != backward) {
        fail_with("the fused kernel ran inside its own oracle");
      }
      Arranged fused(drawn_, contiguous_arrangement(), dtype);
      const Tensor value = row_.value(fused.view());
      const std::vector<Tensor> gradients = fused.gradients(row_.value);
      if (row_.kernel && count(row_.kernel) == forward) fail_with("the fused kernel did not run");
      const std::int64_t after = count(row_.backward_kernel);
      if (row_.backward_kernel && after == backward) fail_with("the fused gradient did not run");
      fused.gradients(row_.value, true);
      if (count(row_.backward_kernel) != after)
        fail_with("the fused gradient ran where it is to be differentiated");
      expect_equal("value", value, expected, tolerance);
      expect_equal(gradients, expected_gradients, tolerance);
    }
  }

  void check_special(const Example& special) {
    for (const Dtype dtype : {f64, f32}) {
      const double tolerance = dtype == f64 ? f64_tolerance : f32_tolerance();
      Arranged arranged(special.inputs, contiguous_arrangement(), dtype);
      std::vector<Tensor> targets = arranged.targets();
      const Tensor y = (special.of ? special.of : row_.value)(arranged.view());
      expect_equal("value", y, from_values(special.value, y.shape(), f64), tolerance, Zeros::exact);
      if (!row_.differentiable) continue;
      const Tensor cotangent = special.cotangent.empty() ? ones(y.shape(), dtype)
                                                         : from_values(special.cotangent, y.shape(), dtype);
      for (const bool create_graph : {false, true}) {
        const std::vector<Tensor> gradients = grad({y}, targets,
                                                   {.gradients = {cotangent},
                                                    .retain_graph = true,
                                                    .create_graph = create_graph,
                                                    .allow_unused = true});
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          check_special_gradient(special, arranged.leaves[i].name, gradients[i], tolerance);
        }
      }
    }
  }

  void check_special_gradient(const Example& special, const std::string& input, const Tensor& gradient,
                              double tolerance) {
    for (const auto& [name, expected] : special.gradients) {
      if (name != input) continue;
      return expect_equal("gradient of " + name, gradient, from_values(expected, gradient.shape(), f64),
                          tolerance, Zeros::exact);
    }
    if (!all(is_finite(gradient)))
      fail_with("the gradient of " + input + " is not finite: " + to_string(gradient));
  }

  void check_refusal(const ErrorCase& refusal) {
    try {
      refusal.call(Inputs(drawn_));
      fail_with("nothing was thrown");
    } catch (const Error& e) {
      const std::string text = e.what();
      if (!refusal.is_expected(e)) fail_with("the wrong kind of error: " + text);
      if (text.empty() || text[0] != '[' || text.find(refusal.text) == std::string::npos) {
        fail_with(fmt::format("the error should start with a name in brackets and contain '{}': {}",
                              refusal.text, text));
      }
    }
  }

  const Case& row_;
  CaseOptions options_;
  std::vector<NamedTensor> drawn_;
  std::string subject_;
  CaseReport report_;
};

}  // namespace

CaseReport check(const Case& row, const CaseOptions& options) { return Checker(row, options).run(); }

}  // namespace fovea
