#include "tests/gradcheck/rows.h"

#include <algorithm>
#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

constexpr double fixed_step = 1e-6, absolute = 1e-5, relative = 1e-3;

Tensor leaf_with(const Tensor& x, std::size_t moved, double by) {
  std::vector<double> values = x.to_vector();
  if (moved < values.size()) values[moved] += by;
  return from_values(values, x.shape(), x.dtype()).set_requires_grad();
}

// The inputs as leaves, with one element of one input moved.
Inputs leaves_of(const Inputs& inputs, std::size_t input, std::size_t element, double by) {
  std::vector<NamedTensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool here = i == input;
    leaves.push_back({(inputs.begin() + static_cast<std::ptrdiff_t>(i))->name,
                      leaf_with(inputs.at(i), here ? element : inputs.at(i).to_vector().size(), by)});
  }
  return Inputs(leaves);
}

std::vector<Tensor> targets_of(const Inputs& leaves) {
  std::vector<Tensor> targets;
  for (const auto& [name, x] : leaves) targets.push_back(x);
  return targets;
}

bool fixed_step_agrees(const NamedFunction& f, const Inputs& inputs) {
  const Inputs at = leaves_of(inputs, inputs.size(), 0, 0);
  const Tensor y = f(at);
  for (std::int64_t k = 0; k < y.numel(); ++k) {
    std::vector<double> one(static_cast<std::size_t>(y.numel()), 0);
    one[static_cast<std::size_t>(k)] = 1;
    const std::vector<Tensor> analytic = grad(
        {y}, targets_of(at),
        {.gradients = {from_values(one, y.shape(), y.dtype())}, .retain_graph = true, .allow_unused = true});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<double> row = analytic[i].to_vector();
      for (std::size_t j = 0; j < row.size(); ++j) {
        const double up = f(leaves_of(inputs, i, j, fixed_step)).to_vector()[static_cast<std::size_t>(k)];
        const double down = f(leaves_of(inputs, i, j, -fixed_step)).to_vector()[static_cast<std::size_t>(k)];
        const double numeric = (up - down) / (2 * fixed_step);
        if (!(std::abs(row[j] - numeric) <= absolute + relative * std::abs(numeric))) return false;
      }
    }
  }
  return true;
}

// The gradient of f for a fixed cotangent: the gradients of all inputs, concatenated.
NamedFunction gradient_of(const NamedFunction& f, std::uint64_t seed) {
  return [f, seed](const Inputs& leaves) {
    const Tensor y = f(leaves);
    Rng rng(seed);
    std::vector<Tensor> parts;
    for (const Tensor& part : grad(
             {y}, targets_of(leaves),
             {.gradients = {randn(y.shape(), rng, y.dtype())}, .create_graph = true, .allow_unused = true})) {
      parts.push_back(reshape(part, {-1}));
    }
    return concat(parts, 0);
  };
}

// One row of a Markdown table, and its head.
std::string table_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}
std::string table_head(const std::vector<std::string>& cells) {
  return table_row(cells) + table_row(std::vector<std::string>(cells.size(), "---"));
}

std::string first_hint(const GradcheckReport& report) {
  for (const TensorCheck& tensor : report.tensors) {
    if (!tensor.hint.empty()) return tensor.hint;
  }
  return "";
}

}  // namespace

GradcheckReport check(const GradcheckRow& row, std::uint64_t seed) {
  Rng rng(seed);
  GradcheckOptions options = row.options;
  options.seed = seed;
  return gradcheck(row.f, row.inputs(rng), options);
}

bool is_right(const GradcheckRow& row, const GradcheckReport& report) {
  if (row.expected.empty()) return report.passed();
  const bool hinted = row.hint.empty() || std::ranges::any_of(report.tensors, [&](const TensorCheck& tensor) {
                        return tensor.hint.find(row.hint) != std::string::npos;
                      });
  return report.verdict() == row.expected && hinted;
}

std::string fixed_step_outcome(const GradcheckRow& row, std::uint64_t seed) {
  try {
    Rng rng(seed);
    const Inputs inputs = row.inputs(rng);
    bool agrees = fixed_step_agrees(row.f, inputs);
    if (row.options.order == 2) agrees = agrees && fixed_step_agrees(gradient_of(row.f, seed), inputs);
    return agrees ? "pass" : "mismatch";
  } catch (const Error&) {
    return "error";
  }
}

std::string planted_bugs_table() {
  std::string text = table_head({"planted bug", "gradcheck", "hint", "one fixed step"});
  for (const GradcheckRow& row : planted_bugs()) {
    const GradcheckReport report = check(row, 1);
    text += table_row({row.name, report.verdict(), first_hint(report), fixed_step_outcome(row, 1)});
  }
  return text;
}

std::string hard_functions_table() {
  std::string text = table_head({"correct function", "gradcheck", "order 2", "one fixed step", "order 2"});
  for (GradcheckRow row : hard_functions()) {
    std::vector<std::string> cells{row.name};
    std::vector<std::string> fixed;
    for (const int order : {1, 2}) {
      row.options.order = order;
      cells.push_back(check(row, 1).verdict());
      fixed.push_back(fixed_step_outcome(row, 1));
    }
    cells.insert(cells.end(), fixed.begin(), fixed.end());
    text += table_row(cells);
  }
  return text;
}

}  // namespace fovea
