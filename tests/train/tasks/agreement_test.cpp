#include "fovea/train/tasks/agreement/agreement.h"

#include <algorithm>
#include <cmath>

#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/task.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

const Agreement& grammar() {
  static const Agreement agreement;
  return agreement;
}

// The grammar's own next-word probabilities, where `is` and `are` may change places.
LanguageModel truth(bool swap_verbs) {
  return [=](const Indices& ids) {
    const std::int64_t T = ids.size(1), V = grammar().vocabulary().size();
    const auto is = static_cast<std::size_t>(*grammar().vocabulary().find("is"));
    const auto are = static_cast<std::size_t>(*grammar().vocabulary().find("are"));
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * V));
    for (std::int64_t b = 0; b < ids.size(0); ++b) {
      for (std::int64_t t = 0; t < T && ids[b * T + t] != Agreement::padding; ++t) {
        std::vector<double> p = grammar().next_word({ids.data() + b * T, static_cast<std::size_t>(t) + 1});
        if (swap_verbs) std::swap(p[is], p[are]);
        for (std::int64_t v = 0; v < V; ++v) {
          logits[static_cast<std::size_t>((b * T + t) * V + v)] =
              std::log(p[static_cast<std::size_t>(v)] + 1e-9);
        }
      }
    }
    return from_values(logits, {ids.size(0), T, V}, f64);
  };
}

}  // namespace

TEST_CASE("agreement task: who knows the grammar is at the floor and right", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("agreement");
  Rng rng(3);
  for (const Metric& metric : task->score(truth(false), rng)) {
    CAPTURE(metric.name);
    CHECK(metric.value == Approx(metric.right).margin(1e-6));
    CHECK(metric.reached());
  }
}

TEST_CASE("agreement task: who says the wrong verb is above the floor", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("agreement");
  Rng rng(5);
  const std::vector<Metric> metrics = task->score(truth(true), rng);
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[0].value > 0.5);
  CHECK_FALSE(metrics[0].reached());
  CHECK(metrics[1].name == "verb right");
  CHECK(metrics[1].value == 0);
  CHECK(metrics[2].value == 1);
}

TEST_CASE("agreement task: batches are sentences, padded where no target is judged", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("agreement");
  Rng rng(7);
  const Batch batch = task->unseen_batch(53, rng);
  const std::int64_t T = batch.inputs.size(1);
  for (std::int64_t b = 0; b < 53; ++b) {
    std::vector<std::int64_t> ids;
    for (std::int64_t t = 0; t < T; ++t) {
      const bool padded = batch.inputs[b * T + t] == Agreement::padding;
      REQUIRE(padded == (batch.targets[b * T + t] == ignored_target));
      if (!padded) ids.push_back(batch.targets[b * T + t]);
    }
    REQUIRE_NOTHROW(grammar().parse(grammar().vocabulary().decode(ids)));
  }
}

TEST_CASE("agreement task: sentences without a phrase are all for training", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("agreement");
  const std::int64_t padding = Agreement::padding;
  const auto shortest = [&](const Batch& batch) {
    std::int64_t least = batch.inputs.size(1);
    for (std::int64_t b = 0; b < batch.inputs.size(0); ++b) {
      const auto row = batch.inputs.values().subspan(static_cast<std::size_t>(b * batch.inputs.size(1)),
                                                     static_cast<std::size_t>(batch.inputs.size(1)));
      least = std::min(least, std::ranges::count_if(row, [&](std::int64_t id) { return id != padding; }));
    }
    return least;
  };
  Rng rng(11);
  CHECK(shortest(task->sample_batch(101, rng)) == 5);  // <start> the key is rusted
  CHECK(shortest(task->unseen_batch(101, rng)) == 8);  // with "to the cabinets"
}
