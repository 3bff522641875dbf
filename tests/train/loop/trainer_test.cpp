#include "fovea/train/loop/trainer.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/train/optimizers/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

// A model whose logits are one learned row, whatever the ids.
struct Bias {
  Tensor b;  // (V,)

  Tensor operator()(const Indices& ids) const {
    return broadcast_to(b, {ids.size(0), ids.size(1), b.numel()});
  }
  static void visit(const Bias& self, Visitor& v) { v("b", self.b); }
};

Bias uniform_bias() { return {parameter(zeros({3}))}; }

EvaluationSource without_rng(const BatchSource& source) {
  return [source](std::int64_t index) {
    Rng rng(1);
    return source(index, rng);
  };
}

// Batches of one sequence. The model does not look at the inputs.
BatchSource rows(std::vector<std::vector<std::int64_t>> targets) {
  return [targets = std::move(targets)](std::int64_t index, Rng&) -> std::optional<Batch> {
    if (index >= static_cast<std::int64_t>(targets.size())) return std::nullopt;
    const auto& row = targets[static_cast<std::size_t>(index)];
    const Shape shape{1, static_cast<std::int64_t>(row.size())};
    return Batch{Indices(shape, std::vector<std::int64_t>(row.size(), 0)), Indices(shape, row)};
  };
}

// The same batch forever.
BatchSource always(const std::vector<std::int64_t>& targets) {
  return [batches = rows({targets})](std::int64_t, Rng& rng) { return batches(0, rng); };
}

std::vector<StepReport> reports_of(Trainer& trainer) {
  std::vector<StepReport> reports;
  trainer.on_step([&](const StepReport& report) { reports.push_back(report); });
  trainer.run();
  return reports;
}

TEST_CASE("Trainer: the loss of a step is the sum over its targets, divided by their number", "[trainer]") {
  // The three tokens have -log p of 4, of 1, and of what is left.
  const double p0 = std::exp(-4), p1 = std::exp(-1);
  const auto model_with = [&] {
    return Bias{parameter(tensor({std::log(p0), std::log(p1), std::log(1 - p0 - p1)}, f64))};
  };
  // The batches have mean losses of 4 over 1 token and of 1 over 3 tokens.
  const Bias in_two = model_with(), in_one = model_with();
  Sgd two(named_parameters(in_two), {.learning_rate = 0.5});
  Sgd one(named_parameters(in_one), {.learning_rate = 0.5});
  Trainer of_two(in_two, two, rows({{0}, {1, 1, 1}}), {.steps = 1, .accumulate = 2});
  Trainer of_one(in_one, one, rows({{0, 1, 1, 1}}), {.steps = 1});
  const StepReport report = reports_of(of_two).at(0);
  CHECK(report.loss == Approx(1.75).epsilon(1e-12));
  CHECK(report.tokens == 4);
  CHECK(reports_of(of_one).at(0).gradient_norm == Approx(report.gradient_norm).epsilon(1e-12));
  check_close(in_two.b.grad(), in_one.b.grad(), 1e-15);
  check_close(in_two.b, in_one.b, 1e-15);
  CHECK(largest_difference(in_two.b, model_with().b) > 0.1);
}

TEST_CASE("Trainer: the last step has fewer batches if the data ends within it", "[trainer]") {
  const Bias model = uniform_bias(), by_hand = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.5});
  Trainer trainer(model, optimizer, rows({{0}, {1}, {2, 2}, {0, ignored_target, 1}, {1}}),
                  {.steps = 100, .accumulate = 3});
  std::vector<StepReport> reports;
  trainer.on_step([&](const StepReport& report) { reports.push_back(report); });
  CHECK(trainer.run() == StopReason::end_of_data);
  CHECK(trainer.status().step == 2);
  CHECK(trainer.status().tokens == 4 + 3);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].loss == Approx(std::log(3)));
  CHECK(reports[1].tokens == 3);

  Sgd its(named_parameters(by_hand), {.learning_rate = 0.5});
  for (const Indices& targets : {Indices{{0, 1, 2, 2}}, Indices{{0, 1, 1}}}) {
    its.zero_grad();
    backward(cross_entropy(by_hand(targets), targets).loss);
    its.step();
  }
  check_close(model.b, by_hand.b, 1e-7);
}

TEST_CASE("Trainer: the learning rate of the schedule is used and reported exactly", "[trainer]") {
  const Schedule schedule(
      {.kind = LrSchedule::cosine, .rate = 0.3, .final_rate = 0.01, .steps = 11, .warmup = 3});
  const Bias model = uniform_bias(), by_hand = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 7});
  Trainer trainer(model, optimizer, always({0, 0, 1}), {.steps = 11, .learning_rate = schedule});
  const std::vector<StepReport> reports = reports_of(trainer);
  REQUIRE(reports.size() == 11);
  for (std::int64_t step = 0; step < 11; ++step)
    CHECK(reports[static_cast<std::size_t>(step)].learning_rate == schedule(step));

  Sgd its(named_parameters(by_hand), {.learning_rate = 7});
  for (std::int64_t step = 0; step < 11; ++step) {
    its.set_learning_rate(schedule(step));
    its.zero_grad();
    backward(cross_entropy(by_hand(Indices{{0, 0, 1}}), Indices{{0, 0, 1}}).loss);
    its.step();
  }
  check_close(model.b, by_hand.b, 1e-6);
}

TEST_CASE("Trainer: gradients are clipped, and the norm before clipping is reported", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 1});
  Trainer trainer(model, optimizer, always({0}), {.steps = 1, .clip = 0.125});
  // softmax - one_hot = (-2/3, 1/3, 1/3)
  CHECK(reports_of(trainer).at(0).gradient_norm == Approx(std::sqrt(6.0) / 3));
  CHECK(std::sqrt(sum(model.b * model.b).item()) == Approx(0.125));
}

TEST_CASE("Trainer: evaluation is the mean over targets, without the extras of the training loss",
          "[trainer]") {
  const Bias model{parameter(tensor({-4, -1, std::log(1 - std::exp(-4) - std::exp(-1))}, f64))};
  Sgd optimizer(named_parameters(model), {.learning_rate = 0});
  Trainer trainer(model, optimizer, always({2}),
                  {.steps = 5,
                   .loss = {.ignore_index = ignored_target, .label_smoothing = 0.1, .z_loss = 0.1},
                   .evaluation = without_rng(rows({{0}, {1, ignored_target, 1, 1}})),
                   .evaluate_every = 2});
  std::vector<EvaluationReport> evaluations;
  trainer.on_evaluation([&](const EvaluationReport& report) { evaluations.push_back(report); });
  trainer.run();
  REQUIRE(evaluations.size() == 3);
  const std::int64_t steps[] = {2, 4, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(evaluations[i].step == steps[i]);
    CHECK(evaluations[i].loss == Approx(1.75).epsilon(1e-12));
    CHECK(evaluations[i].tokens == 4);
    CHECK(evaluations[i].best == (i == 0));
  }
  CHECK(trainer.status().evaluation == evaluations[0].loss);
  CHECK(trainer.status().best_evaluation == evaluations[0].loss);
}

TEST_CASE("Trainer: averaged weights are evaluated, if there are any", "[trainer]") {
  const Bias model = uniform_bias(), averaged = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.5});
  Trainer trainer(model, optimizer, always({0, 1, 0}),
                  {.steps = 3, .ema_decay = 0.75, .evaluation = without_rng(rows({{2, 1}}))});
  Ema average(named_parameters(averaged), 0.75);
  Sgd its(named_parameters(averaged), {.learning_rate = 0.5});
  for (int step = 0; step < 3; ++step) {
    its.zero_grad();
    backward(cross_entropy(averaged(Indices{{0, 1, 0}}), Indices{{0, 1, 0}}).loss);
    its.step();
    average.update();
  }
  trainer.run();
  const double evaluation = trainer.status().evaluation;
  CHECK(evaluation != Approx(cross_entropy(model(Indices{{2, 1}}), Indices{{2, 1}}).loss.item()));
  average.swap();
  CHECK(evaluation == Approx(cross_entropy(averaged(Indices{{2, 1}}), Indices{{2, 1}}).loss.item()));
  average.swap();
  const std::vector<double> before = model.b.to_vector();
  CHECK(trainer.evaluate().loss == evaluation);
  CHECK(model.b.to_vector() == before);
}

TEST_CASE("Trainer: early_stopping stops after that many evaluations without a lower loss", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  // The model learns to predict 0 and is evaluated on 1, so every evaluation is worse than the one before.
  Trainer trainer(model, optimizer, always({0}),
                  {.steps = 1000, .evaluation = without_rng(rows({{1}})), .evaluate_every = 5});
  trainer.stop_when(early_stopping(3));
  CHECK(trainer.run() == StopReason::no_improvement);
  CHECK(trainer.status().step == 5 * (1 + 3));
  CHECK(trainer.status().best_evaluation.value() < trainer.status().evaluation);
  CHECK(trainer.run() == StopReason::no_improvement);
  CHECK(trainer.status().step == 5 * (1 + 3));
}

TEST_CASE("Trainer: stops when its steps are taken or a condition says so", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  struct Outcome {
    StopReason reason;
    TrainerStatus status;
  };
  const auto train = [&](std::int64_t steps, const std::vector<StopCondition>& conditions) {
    Trainer trainer(model, optimizer, always({0, 1, 2}), {.steps = steps});
    for (const StopCondition& condition : conditions) trainer.stop_when(condition);
    const StopReason reason = trainer.run();
    return Outcome{reason, trainer.status()};
  };
  CHECK(train(7, {}).reason == StopReason::all_steps);
  CHECK(train(7, {}).status.step == 7);

  const Outcome by_tokens = train(100, {token_budget(13)});
  CHECK(by_tokens.reason == StopReason::token_budget);
  CHECK(by_tokens.status.tokens == 15);

  const Outcome by_time = train(100, {time_budget(1e-12)});
  CHECK(by_time.reason == StopReason::time_budget);
  CHECK(by_time.status.step == 1);

  const StopCondition at_3 = [](const TrainerStatus& status) {
    return status.step == 3 ? std::optional(StopReason::interrupted) : std::nullopt;
  };
  const Outcome by_condition = train(100, {token_budget(1000), at_3, time_budget(1000)});
  CHECK(by_condition.reason == StopReason::interrupted);
  CHECK(by_condition.status.step == 3);
  CHECK(train(3, {at_3}).reason == StopReason::all_steps);

  CHECK_THROWS_AS(early_stopping(0), ValueError);
  CHECK_THROWS_AS(token_budget(0), ValueError);
  CHECK_THROWS_AS(time_budget(0), ValueError);
  CHECK_THROWS_AS(time_budget(std::nan("")), ValueError);
}

TEST_CASE("Trainer: is evaluated when training is complete, and not when it is only interrupted",
          "[trainer]") {
  for (const StopReason reason :
       {StopReason::all_steps, StopReason::end_of_data, StopReason::no_improvement, StopReason::token_budget,
        StopReason::time_budget, StopReason::interrupted}) {
    const Bias model = uniform_bias();
    Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
    const BatchSource two_batches = rows({{0}, {1}});
    const bool ends_itself = reason == StopReason::all_steps || reason == StopReason::end_of_data;
    Trainer trainer(
        model, optimizer, reason == StopReason::end_of_data ? two_batches : always({0}),
        {.steps = reason == StopReason::all_steps ? 2 : 100, .evaluation = without_rng(rows({{1}}))});
    if (!ends_itself) {
      trainer.stop_when([=](const TrainerStatus& status) {
        return status.step == 2 ? std::optional(reason) : std::nullopt;
      });
    }
    std::vector<std::optional<StopReason>> step_ends;
    trainer.on_step_end([&](std::optional<StopReason> stop) {
      step_ends.push_back(stop);
      CHECK((trainer.status().evaluated_at == 2) == (stop && is_final(*stop)));
    });
    CHECK(trainer.run() == reason);
    CHECK(trainer.status().step == 2);
    CHECK(is_final(reason) == (reason != StopReason::time_budget && reason != StopReason::interrupted));
    CHECK(step_ends.back() == reason);
    CHECK(step_ends.size() == (reason == StopReason::end_of_data ? 3 : 2));
  }
}

TEST_CASE("Trainer: run continues after a stop", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  bool asked = false;
  Trainer trainer(model, optimizer, always({0, 1, 2}), {.steps = 7});
  trainer.stop_when([&](const TrainerStatus& status) {
    const bool stop = status.step == 3 && !std::exchange(asked, true);
    return stop ? std::optional(StopReason::interrupted) : std::nullopt;
  });
  CHECK(trainer.run() == StopReason::interrupted);
  CHECK(trainer.status().step == 3);
  CHECK(trainer.run() == StopReason::all_steps);
  CHECK(trainer.status().step == 7);
}

TEST_CASE("Trainer: the summary counts parameters and measures the next batch", "[trainer]") {
  const Bias model = uniform_bias();
  AdamW optimizer(named_parameters(model));
  int drawn = 0;
  const auto source = [&](std::int64_t, Rng& rng) -> std::optional<Batch> {
    ++drawn;
    const std::int64_t target = rng.uniform_int(3);
    const Shape shape{1, 1};
    return Batch{Indices(shape, std::vector<std::int64_t>{0}), Indices(shape, std::vector{target})};
  };
  Trainer trainer(model, optimizer, source, {.steps = 3});
  CHECK(trainer.summary() ==
        "parameters  3, tied ones counted once: 0 decay, 3 do not\n"
        "loss        1.0986 before training; ln V = 1.0986, V = 3");
  CHECK(drawn == 1);
  Trainer without(model, optimizer, rows({}), {});
  CHECK_THAT(without.summary(), ContainsSubstring("the next batch has no target"));
}

TEST_CASE("Trainer: options outside their range are errors", "[trainer]") {
  const Bias model = uniform_bias(), other = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  const auto make = [&](const TrainerOptions& options) {
    const Trainer trainer(model, optimizer, always({0}), options);
  };
  const EvaluationSource evaluation = without_rng(rows({{1}}));
  CHECK_THROWS_WITH(make({.steps = 0}), ContainsSubstring("steps must be 1 or more"));
  CHECK_THROWS_WITH(make({.accumulate = 0}), ContainsSubstring("accumulate"));
  CHECK_THROWS_AS(make({.clip = 0}), ValueError);
  CHECK_THROWS_AS(make({.clip = std::nan("")}), ValueError);
  CHECK_THROWS_AS(make({.ema_decay = 1}), ValueError);
  CHECK_THROWS_AS(make({.skip_loss_above_sigma = -1}), ValueError);
  CHECK_THROWS_WITH(make({.evaluate_every = 3}), ContainsSubstring("evaluate_every needs an evaluation"));
  CHECK_NOTHROW(make({.evaluation = evaluation, .evaluate_every = 3}));
  CHECK_THROWS_WITH(Trainer(other, optimizer, always({0})),
                    ContainsSubstring("the optimizer's parameter 'b' is not the model's"));
  CHECK_THROWS_AS(Trainer(model, optimizer, nullptr), ValueError);

  Trainer trainer(model, optimizer, always({0}), {.evaluation = without_rng(rows({{ignored_target}}))});
  CHECK_THROWS_WITH(trainer.evaluate(), ContainsSubstring("no target in the evaluation's batches"));
  Trainer without(model, optimizer, always({0}));
  CHECK_THROWS_AS(without.evaluate(), ValueError);
}

}  // namespace
}  // namespace fovea
