#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/layers/state.h"
#include "fovea/train/loop/recent_losses.h"
#include "fovea/train/loop/trainer.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What the first id of a batch makes of a step.
enum Accident : std::int64_t { none, nan_loss, nan_gradient };

// Returns x, with a gradient of NaN.
Tensor with_nan_gradient(const Tensor& x) {
  return record("with_nan_gradient", clone(x.detach()), {x}, {},
                [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients { return {dy * nan}; });
}

struct Fragile {
  Tensor a, b;  // (V,)

  Tensor operator()(const Indices& ids) const {
    Tensor row = a + (ids[0] == nan_gradient ? with_nan_gradient(b) : b);
    if (ids[0] == nan_loss) row = row * nan;
    return broadcast_to(row, {ids.size(0), ids.size(1), row.numel()});
  }
  static void visit(const Fragile& self, Visitor& v) {
    v("a", self.a);
    v("b", self.b);
  }
};

Batch batch_of(Accident accident, std::int64_t target) {
  const std::int64_t token = accident;
  return {Indices{{token, 0}}, Indices{{target, target}}};
}

struct Setting {
  Fragile model{parameter(zeros({5})), parameter(zeros({5}))};
  AdamW optimizer{named_parameters(model), {.learning_rate = 0.01}};

  // All values that training changes.
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& [name, tensor] : state(model).tensors)
      for (const double x : tensor.to_vector()) all.push_back(x);
    for (const auto& [name, tensor] : state(optimizer).tensors)
      for (const double x : tensor.to_vector()) all.push_back(x);
    return all;
  }
};

TEST_CASE("Trainer: a step with a loss or gradient that is not finite is skipped, counted and explained",
          "[trainer]") {
  Setting setting;
  const auto source = [](std::int64_t index, Rng&) -> std::optional<Batch> {
    return batch_of(index == 3 ? nan_loss : index == 5 ? nan_gradient : none, 2);
  };
  Trainer trainer(setting.model, setting.optimizer, source, {.steps = 9, .ema_decay = 0.5});
  std::vector<StepReport> reports;
  std::vector<std::vector<double>> values{setting.values()};
  trainer.on_step([&](const StepReport& report) {
    reports.push_back(report);
    values.push_back(setting.values());
  });
  trainer.run();
  const TrainerStatus& status = trainer.status();
  CHECK(status.skipped_non_finite == 2);
  CHECK(status.skipped_outliers == 0);
  CHECK(status.step == 9);
  CHECK(status.tokens == 2 * 7);
  for (std::size_t i = 0; i < 9; ++i) {
    INFO("step " << i + 1);
    CHECK(reports[i].skipped.empty() == (i != 3 && i != 5));
    CHECK((values[i] == values[i + 1]) == (i == 3 || i == 5));
  }
  CHECK(reports[3].skipped == "loss is not finite");
  CHECK(reports[5].skipped == "gradient of b is not finite");
  CHECK(std::isfinite(reports[5].loss));
}

TEST_CASE("Trainer: ten skipped steps in a row end the run", "[trainer]") {
  Setting setting;
  // Nine skipped steps in a row are allowed.
  const auto source = [](std::int64_t index, Rng&) -> std::optional<Batch> {
    return batch_of((index >= 2 && index < 11) || index >= 13 ? nan_gradient : none, 2);
  };
  Trainer trainer(setting.model, setting.optimizer, source, {.steps = 100});
  std::vector<double> last_good;
  trainer.on_step([&](const StepReport& report) {
    if (report.step == 13) last_good = setting.values();
  });
  try {
    trainer.run();
    FAIL("it went on");
  } catch (const NonFiniteError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("10 steps in a row were skipped, up to step 23: gradient of b "
                                               "is not finite. The weights are those of step 13"));
    CHECK_THAT(error.what(), ContainsSubstring("smaller learning rate"));
  }
  CHECK(setting.values() == last_good);
}

TEST_CASE("Trainer: a step without a target is skipped", "[trainer]") {
  Setting setting;
  const auto source = [](std::int64_t index, Rng&) -> std::optional<Batch> {
    return batch_of(none, index == 1 ? ignored_target : 2);
  };
  Trainer trainer(setting.model, setting.optimizer, source, {.steps = 3});
  std::vector<std::string> skipped;
  trainer.on_step([&](const StepReport& report) { skipped.push_back(report.skipped); });
  trainer.run();
  const TrainerStatus& status = trainer.status();
  CHECK(skipped == std::vector<std::string>{"", "no target", ""});
  CHECK(status.skipped_non_finite + status.skipped_outliers == 0);
}

TEST_CASE("Trainer: a step with an outlier loss is skipped once there are enough losses to compare it with",
          "[trainer]") {
  Setting setting;
  constexpr std::int64_t memory = RecentLosses::memory;
  // A rare target comes twice: once too early to be recognised as an outlier, and once later.
  const auto source = [](std::int64_t index, Rng&) -> std::optional<Batch> {
    return batch_of(none, index == memory - 1 || index == memory + 20 ? 4 : index % 2);
  };
  Trainer trainer(setting.model, setting.optimizer, source,
                  {.steps = memory + 30, .skip_loss_above_sigma = 4});
  std::vector<std::int64_t> skipped;
  std::vector<std::vector<double>> values{setting.values()};
  std::string reason;
  trainer.on_step([&](const StepReport& report) {
    values.push_back(setting.values());
    if (report.skipped.empty()) return;
    skipped.push_back(report.step);
    reason = report.skipped;
  });
  trainer.run();
  const TrainerStatus& status = trainer.status();
  CHECK(skipped == std::vector<std::int64_t>{memory + 21});
  CHECK(status.skipped_outliers == 1);
  CHECK_THAT(reason, ContainsSubstring("is above"));
  CHECK_THAT(reason, ContainsSubstring("the mean of recent losses + 4 standard deviations"));
  CHECK(values[memory + 20] == values[memory + 21]);
  CHECK(values[memory + 21] != values[memory + 22]);
}

TEST_CASE("RecentLosses: mean and variance of the first losses, then of recent ones only", "[trainer]") {
  RecentLosses recent;
  double sum = 0, squares = 0;
  for (int i = 0; i < RecentLosses::memory; ++i) {
    CHECK_FALSE(recent.limit(3));
    const double loss = std::sin(i) + 2;
    recent.add(loss);
    sum += loss;
    squares += loss * loss;
  }
  const double n = RecentLosses::memory, mean = sum / n;
  CHECK(recent.mean == Approx(mean));
  CHECK(recent.variance == Approx(squares / n - mean * mean));
  CHECK(recent.limit(3).value() == Approx(mean + 3 * std::sqrt(recent.variance)));
  for (int i = 0; i < 1000; ++i) recent.add(0.5);
  CHECK(recent.mean == Approx(0.5));
  CHECK(recent.variance < 1e-6);
}

}  // namespace
}  // namespace fovea
