#include "fovea/train/tasks/task.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

Ids to_ids(const Indices& x) { return {x.values().begin(), x.values().end()}; }

Ids row(const Indices& x, std::int64_t b) {
  const auto T = static_cast<std::size_t>(x.size(1));
  const auto ids = x.values().subspan(static_cast<std::size_t>(b) * T, T);
  return {ids.begin(), ids.end()};
}

// The instances of a batch. Targets are included because only they have the last id.
std::set<Ids> instances(const Batch& batch) {
  std::set<Ids> all;
  for (std::int64_t b = 0; b < batch.inputs.size(0); ++b) {
    Ids ids = row(batch.inputs, b);
    const Ids targets = row(batch.targets, b);
    ids.insert(ids.end(), targets.begin(), targets.end());
    all.insert(ids);
  }
  return all;
}

std::string any_task() {
  const std::vector<std::string> names = task_names();
  return names[static_cast<std::size_t>(GENERATE_COPY(range(0, static_cast<int>(names.size()))))];
}

LanguageModel constant(double logit, std::int64_t vocabulary) {
  return [=](const Indices& ids) { return full({ids.size(0), ids.size(1), vocabulary}, logit); };
}

}  // namespace

TEST_CASE("tasks: each file in train/tasks is a task of that name, with hyphens for underscores",
          "[train][task]") {
  std::vector<std::string> expected;
  for (const auto& file : std::filesystem::directory_iterator(FOVEA_SOURCE_DIR "/train/tasks")) {
    std::string name = file.path().stem().string();
    if (file.path().extension() != ".cpp") continue;
    std::ranges::replace(name, '_', '-');
    expected.push_back(name);
  }
  std::ranges::sort(expected);
  CHECK(task_names() == expected);
  CHECK(std::ranges::find(expected, "modular-addition") != expected.end());
}

TEST_CASE("make_task: an unknown name is refused by an error that lists all tasks", "[train][task]") {
  CHECK_THROWS_AS(make_task("sortin"), ValueError);
  CHECK_THROWS_WITH(make_task("sortin"), ContainsSubstring("\"sortin\"") && ContainsSubstring("agreement") &&
                                             ContainsSubstring("balanced-brackets") &&
                                             ContainsSubstring("sorting"));
}

TEST_CASE("tasks: a batch has ids of the vocabulary, and each target is the next id or ignored",
          "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name);
  CHECK_FALSE(task->summary().empty());
  const bool unseen = GENERATE(false, true);
  Rng rng(3);
  const Batch batch = unseen ? task->unseen_batch(37, rng) : task->sample_batch(37, rng);
  REQUIRE(batch.inputs.size(0) == 37);
  REQUIRE(batch.inputs.shape() == batch.targets.shape());
  const std::int64_t T = batch.inputs.size(1);
  CHECK(T <= task->context());
  bool known = true, next = true;
  std::int64_t judged = 0;
  for (std::int64_t i = 0; i < batch.inputs.numel(); ++i) {
    known = known && batch.inputs[i] >= 0 && batch.inputs[i] < task->vocabulary().size();
    if (batch.targets[i] == ignored_target) continue;
    ++judged;
    const bool last = i % T == T - 1;
    if (!last && batch.targets[i + 1] != ignored_target) {
      next = next && batch.targets[i] == batch.inputs[i + 1];
    }
    known = known && batch.targets[i] >= 0 && batch.targets[i] < task->vocabulary().size();
  }
  CHECK(known);
  CHECK(next);
  CHECK(judged >= 37);
}

TEST_CASE("tasks: the longest input fills the context", "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name);
  Rng rng(5);
  CHECK(task->sample_batch(100, rng).inputs.size(1) == task->context());
}

TEST_CASE("tasks: no instance is both trained on and held out", "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name);
  Rng rng(7);
  const std::set<Ids> seen = instances(task->sample_batch(3001, rng));
  const std::set<Ids> unseen = instances(task->unseen_batch(1009, rng));
  std::size_t common = 0;
  for (const Ids& ids : unseen) common += seen.count(ids);
  CHECK(common == 0);
  CHECK(seen.size() > 500);
  CHECK(unseen.size() > 100);
}

TEST_CASE("tasks: the same random numbers give the same batch", "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name), again = make_task(name);
  Rng rng(11), same(11), other(12);
  const Batch batch = task->sample_batch(13, rng);
  CHECK(to_ids(batch.inputs) == to_ids(again->sample_batch(13, same).inputs));
  CHECK(rng.state() == same.state());
  CHECK(to_ids(batch.inputs) != to_ids(task->sample_batch(13, other).inputs));
  CHECK(to_ids(task->unseen_batch(13, rng).inputs) == to_ids(again->unseen_batch(13, same).inputs));
}

TEST_CASE("tasks: a model that knows nothing does not reach every limit", "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name);
  Rng rng(13);
  const std::vector<Metric> metrics = task->score(constant(0.7, task->vocabulary().size()), rng);
  REQUIRE_FALSE(metrics.empty());
  CHECK_FALSE(std::ranges::all_of(metrics, &Metric::reached));
  for (const Metric& metric : metrics) {
    CHECK_FALSE(metric.name.empty());
    CHECK(std::isfinite(metric.value));
    CHECK(metric.allowed >= 0);
  }
}

TEST_CASE("tasks: scoring records no graph", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("copy");
  Rng rng(17);
  bool recorded = false;
  const LanguageModel model = [&](const Indices& ids) {
    recorded = recorded || recording();
    return zeros({ids.size(0), ids.size(1), task->vocabulary().size()});
  };
  task->score(model, rng);
  CHECK_FALSE(recorded);
}

TEST_CASE("tasks: empty batches and faulty logits are refused", "[train][task]") {
  const std::string name = any_task();
  CAPTURE(name);
  const std::unique_ptr<Task> task = make_task(name);
  const std::int64_t V = task->vocabulary().size();
  Rng rng(19);
  const Rng::State before = rng.state();
  CHECK_THROWS_AS(task->sample_batch(0, rng), ValueError);
  CHECK_THROWS_AS(task->unseen_batch(-1, rng), ValueError);
  CHECK(rng.state() == before);
  CHECK_THROWS_AS(task->score(constant(0, V + 1), rng), ShapeError);
  CHECK_THROWS_AS(task->score(constant(std::numeric_limits<double>::quiet_NaN(), V), rng), NonFiniteError);
  CHECK_THROWS_AS(task->score(constant(std::numeric_limits<double>::infinity(), V), rng), NonFiniteError);
}

TEST_CASE("Metric: a value is reached if it is at least as good as the limit", "[train][task]") {
  Metric share{.name = "right", .value = 0.99, .right = 1, .allowed = 0.01};
  CHECK(share.reached());
  share.value = 0.98;
  CHECK_FALSE(share.reached());
  Metric loss{.name = "loss", .value = 2.02, .right = 2, .allowed = 0.03, .better = Metric::Better::lower};
  CHECK(loss.reached());
  loss.value = 1;
  CHECK(loss.reached());
  loss.value = 2.04;
  CHECK_FALSE(loss.reached());
  loss.value = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(loss.reached());
}
