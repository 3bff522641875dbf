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

// A model with the grammar's own next-word probabilities, in which `is` and `are` may be swapped.
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

TEST_CASE("agreement task: a model that knows the grammar is at the floor and always right",
          "[train][task]") {
  const std::unique_ptr<Task> task = make_task("agreement");
  Rng rng(3);
  for (const Metric& metric : task->score(truth(false), rng)) {
    CAPTURE(metric.name);
    CHECK(metric.value == Approx(metric.right).margin(1e-6));
    CHECK(metric.reached());
  }
}

TEST_CASE("agreement task: a model that says the wrong verb is above the floor", "[train][task]") {
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

TEST_CASE("agreement task: batches are sentences, and padding is never judged", "[train][task]") {
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

TEST_CASE("agreement task: all sentences without a phrase are for training", "[train][task]") {
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

TEST_CASE("agreement task: it shows the head that attends most to the subject", "[train][task]") {
  // Two layers of two heads, which attend uniformly, except that head 1 of layer 0 gives "key" 4 times the
  // weight.
  const auto attention = [](const Indices& ids) {
    const std::int64_t B = ids.size(0), T = ids.size(1);
    std::vector<Tensor> maps;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      std::vector<double> weights;
      for (std::int64_t i = 0; i < B * 2 * T * T; ++i) {
        const std::int64_t key = i % T, query = i / T % T, head = i / (T * T) % 2;
        const bool favoured = layer == 0 && head == 1;
        const double total = static_cast<double>(query + 1) + (favoured && query >= 2 ? 3 : 0);
        weights.push_back(key > query ? 0 : (favoured && key == 2 ? 4 : 1) / total);
      }
      maps.push_back(from_values(weights, {B, 2, T, T}, f64));
    }
    return maps;
  };
  const std::unique_ptr<Task> task = make_task("agreement");
  Rng rng(13);
  const std::vector<Exhibit> exhibits = task->exhibits({truth(false), attention}, rng);
  REQUIRE(exhibits.size() == 1);
  CHECK(exhibits[0].words == std::vector<std::string>{"<start>", "the", "key", "to", "the", "cabinets"});
  CHECK_THAT(exhibits[0].text,
             ContainsSubstring("head 1 of layer 0") && ContainsSubstring("predicts \"is\" (40%)"));
  CHECK(exhibits[0].weights.to_vector() ==
        std::vector<double>{1 / 9.0, 1 / 9.0, 4 / 9.0, 1 / 9.0, 1 / 9.0, 1 / 9.0});
}
