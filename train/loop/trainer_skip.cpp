#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/base/fail.h"
#include "fovea/train/loop/trainer.h"

// When a step of training leaves the weights as they are, and when training gives up.
namespace fovea {
namespace {

constexpr std::int64_t max_skipped_in_row = 10;

std::string describe_non_finite_gradient(const std::vector<NamedTensor>& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const Tensor gradient = tensor.grad();
    if (!gradient.defined()) continue;
    if (!std::ranges::all_of(gradient.to_vector(), [](double x) { return std::isfinite(x); }))
      return fmt::format("gradient of {} is not finite", name);
  }
  return "the gradients' norm is not finite";
}

}  // namespace

// Returns why the weights must not be updated, and counts it; an empty text if they may.
std::string Trainer::reason_to_skip(const BatchSums& sums, const StepReport& report) {
  if (sums.divisor == 0) return "no target";
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    ++status_.skipped_non_finite;
    return std::isfinite(report.loss) ? describe_non_finite_gradient(optimizer_.parameters())
                                      : "loss is not finite";
  }
  const double sigmas = options_.skip_loss_above_sigma;
  const std::optional<double> limit = status_.recent_losses.limit(sigmas);
  if (sigmas > 0 && limit && report.loss > *limit) {
    ++status_.skipped_outliers;
    return fmt::format("loss {:.4f} is above {:.4f}, the mean of recent losses + {} standard deviations",
                       report.loss, *limit, sigmas);
  }
  return "";
}

void Trainer::check_skipped_in_row(const StepReport& last) const {
  if (status_.skipped_in_row < max_skipped_in_row) return;
  const std::string text = fmt::format(
      "[Trainer::run] {} steps in a row were skipped, up to step {}: {}. The weights are those of step {}.",
      status_.skipped_in_row, last.step, last.skipped, last.step - status_.skipped_in_row);
  if (!std::isfinite(last.loss) || !std::isfinite(last.gradient_norm)) {
    fail<NonFiniteError>(
        "{} Try a smaller learning rate, a longer warm-up or a lower clip; an Anomaly scope finds the op "
        "that produces the first value that is not finite",
        text);
  }
  fail<ValueError>("{} Look at the batches, or raise skip_loss_above_sigma", text);
}

}  // namespace fovea
