#include "fovea/train/loop/trainer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/graph/graph.h"
#include "fovea/train/optimizers/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

// Logits that do not depend on the ids: one row, which is learned.
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

// Batches of one row, whose inputs do not matter.
BatchSource rows(std::vector<std::vector<std::int64_t>> targets) {
  return [targets = std::move(targets)](std::int64_t index, Rng&) -> std::optional<Batch> {
    if (index >= static_cast<std::int64_t>(targets.size())) return std::nullopt;
    const auto& row = targets[static_cast<std::size_t>(index)];
    const Shape shape{1, static_cast<std::int64_t>(row.size())};
    return Batch{Indices(shape, std::vector<std::int64_t>(row.size(), 0)), Indices(shape, row)};
  };
}

// The same row again and again.
BatchSource always(const std::vector<std::int64_t>& targets) {
  return [batches = rows({targets})](std::int64_t, Rng& rng) { return batches(0, rng); };
}

std::vector<StepReport> reports_of(Trainer& trainer) {
  std::vector<StepReport> reports;
  trainer.on_step([&](const StepReport& report) { reports.push_back(report); });
  trainer.run();
  return reports;
}

TEST_CASE("Trainer: a step's loss is the sum over targets by their number", "[trainer]") {
  // -log p of the three words: 4, 1, and what is left.
  const double p0 = std::exp(-4), p1 = std::exp(-1);
  const auto model_with = [&] {
    return Bias{parameter(tensor({std::log(p0), std::log(p1), std::log(1 - p0 - p1)}, f64))};
  };
  // Means of 4 over 1 token and of 1 over 3 tokens.
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

TEST_CASE("Trainer: a step that the data end in counts its own targets", "[trainer]") {
  const Bias model = uniform_bias(), by_hand = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.5});
  Trainer trainer(model, optimizer, rows({{0}, {1}, {2, 2}, {0, ignored_target, 1}, {1}}),
                  {.steps = 100, .accumulate = 3});
  std::vector<StepReport> reports;
  trainer.on_step([&](const StepReport& report) { reports.push_back(report); });
  const TrainingResult result = trainer.run();
  CHECK(result.ending == Ending::data_ended);
  CHECK(result.step == 2);
  CHECK(result.tokens == 4 + 3);
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

TEST_CASE("Trainer: the schedule's rate is used and reported exactly", "[trainer]") {
  const Schedule schedule(
      {.decay = LrSchedule::cosine, .rate = 0.3, .final_rate = 0.01, .steps = 11, .warmup = 3});
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

TEST_CASE("Trainer: gradients are clipped, and the norm before is reported", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 1});
  Trainer trainer(model, optimizer, always({0}), {.steps = 1, .clip = 0.125});
  // softmax - one_hot = (-2/3, 1/3, 1/3)
  CHECK(reports_of(trainer).at(0).gradient_norm == Approx(std::sqrt(6.0) / 3));
  CHECK(std::sqrt(sum(model.b * model.b).item()) == Approx(0.125));
}

TEST_CASE("Trainer: evaluation is the mean over targets, outside of training", "[trainer]") {
  const Bias model{parameter(tensor({-4, -1, std::log(1 - std::exp(-4) - std::exp(-1))}, f64))};
  Sgd optimizer(named_parameters(model), {.learning_rate = 0});
  Trainer trainer(model, optimizer, always({2}),
                  {.steps = 5,
                   .loss = {.ignore_index = ignored_target, .label_smoothing = 0.1, .z_loss = 0.1},
                   .evaluation = without_rng(rows({{0}, {1, ignored_target, 1, 1}})),
                   .evaluate_every = 2});
  std::vector<EvaluationReport> evaluations;
  trainer.on_evaluation([&](const EvaluationReport& report) { evaluations.push_back(report); });
  const TrainingResult result = trainer.run();
  REQUIRE(evaluations.size() == 3);
  const std::int64_t steps[] = {2, 4, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(evaluations[i].step == steps[i]);
    CHECK(evaluations[i].loss == Approx(1.75).epsilon(1e-12));
    CHECK(evaluations[i].tokens == 4);
    CHECK(evaluations[i].best == (i == 0));
  }
  CHECK(result.evaluation == evaluations[0].loss);
  CHECK(result.best_evaluation == evaluations[0].loss);
}

TEST_CASE("Trainer: averaged weights are what is evaluated", "[trainer]") {
  const Bias model = uniform_bias(), averaged = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.5});
  Trainer trainer(model, optimizer, always({0, 1, 0}),
                  {.steps = 3, .average = 0.75, .evaluation = without_rng(rows({{2, 1}}))});
  Ema average(named_parameters(averaged), 0.75);
  Sgd its(named_parameters(averaged), {.learning_rate = 0.5});
  for (int step = 0; step < 3; ++step) {
    its.zero_grad();
    backward(cross_entropy(averaged(Indices{{0, 1, 0}}), Indices{{0, 1, 0}}).loss);
    its.step();
    average.update();
  }
  const double evaluation = trainer.run().evaluation.value();
  CHECK(evaluation != Approx(cross_entropy(model(Indices{{2, 1}}), Indices{{2, 1}}).loss.item()));
  average.swap();
  CHECK(evaluation == Approx(cross_entropy(averaged(Indices{{2, 1}}), Indices{{2, 1}}).loss.item()));
  average.swap();
  const std::vector<double> before = model.b.to_vector();
  CHECK(trainer.evaluate().loss == evaluation);
  CHECK(model.b.to_vector() == before);
}

TEST_CASE("Trainer: stops after `patience` evaluations without a lower loss", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  // What is learned is not what is asked, so every evaluation but the first is worse than the one before.
  Trainer trainer(
      model, optimizer, always({0}),
      {.steps = 1000, .evaluation = without_rng(rows({{1}})), .evaluate_every = 5, .patience = 3});
  const TrainingResult result = trainer.run();
  CHECK(result.ending == Ending::early_stop);
  CHECK(result.step == 5 * (1 + 3));
  CHECK(result.best_evaluation.value() < result.evaluation.value());
}

TEST_CASE("Trainer: budgets, and a wish to stop", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  const auto run = [&](const TrainerOptions& options) {
    return Trainer(model, optimizer, always({0, 1, 2}), options).run();
  };
  CHECK(run({.steps = 7}).ending == Ending::finished);
  CHECK(run({.steps = 7}).step == 7);

  const TrainingResult by_tokens = run({.steps = 100, .tokens = 13});
  CHECK(by_tokens.ending == Ending::out_of_tokens);
  CHECK(by_tokens.tokens == 15);

  const TrainingResult by_time = run({.steps = 100, .seconds = 1e-12});
  CHECK(by_time.ending == Ending::out_of_time);
  CHECK(by_time.step == 1);

  int asked = 0;
  const auto stop_at_3 = [&] { return ++asked == 3; };
  CHECK(run({.steps = 100, .stop = stop_at_3}).ending == Ending::interrupted);
  CHECK(asked == 3);
  asked = 0;
  CHECK(run({.steps = 3, .stop = stop_at_3}).ending == Ending::finished);
}

TEST_CASE("Trainer: run again goes on after a stop", "[trainer]") {
  const Bias model = uniform_bias();
  Sgd optimizer(named_parameters(model), {.learning_rate = 0.1});
  int asked = 0;
  Trainer trainer(model, optimizer, always({0, 1, 2}), {.steps = 7, .stop = [&] { return ++asked == 3; }});
  CHECK(trainer.run().step == 3);
  CHECK(trainer.step() == 3);
  CHECK(trainer.run().step == 7);
}

TEST_CASE("Trainer: a summary before the start", "[trainer]") {
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
        "loss        1.0986 at first; ln V = 1.0986, V = 3");
  CHECK(drawn == 1);
  Trainer without(model, optimizer, rows({}), {});
  CHECK_THAT(without.summary(), ContainsSubstring("no targets in the next batch"));
}

TEST_CASE("Trainer: what makes no sense is refused", "[trainer]") {
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
  CHECK_THROWS_AS(make({.average = 1}), ValueError);
  CHECK_THROWS_AS(make({.outlier = -1}), ValueError);
  CHECK_THROWS_WITH(make({.evaluate_every = 3}), ContainsSubstring("need an evaluation"));
  CHECK_THROWS_WITH(make({.evaluation = evaluation, .patience = 3}), ContainsSubstring("set evaluate_every"));
  CHECK_THROWS_WITH(make({.checkpoint_every = 3}), ContainsSubstring("needs a folder"));
  CHECK_THROWS_AS(make({.keep = 0}), ValueError);
  CHECK_THROWS_AS(make({.seconds = 0}), ValueError);
  CHECK_THROWS_AS(make({.tokens = 0}), ValueError);
  CHECK_THROWS_AS(make({.metadata = {{"fovea.trainer", "x"}}}), ValueError);
  CHECK_NOTHROW(make({.evaluation = evaluation, .evaluate_every = 3, .patience = 3}));
  CHECK_THROWS_WITH(Trainer(other, optimizer, always({0})),
                    ContainsSubstring("the optimizer's parameter 'b' is not the model's"));
  CHECK_THROWS_AS(Trainer(model, optimizer, nullptr), ValueError);

  Trainer trainer(model, optimizer, always({0}), {.evaluation = without_rng(rows({{ignored_target}}))});
  CHECK_THROWS_WITH(trainer.evaluate(), ContainsSubstring("no target in the evaluation's batches"));
  Trainer without(model, optimizer, always({0}));
  CHECK_THROWS_AS(without.evaluate(), ValueError);
  CHECK_THROWS_AS(without.resume(), ValueError);
}

}  // namespace
}  // namespace fovea
