#include <cmath>

#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/task.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

const Task& task() {
  static const std::unique_ptr<Task> induction = make_task("induction");
  return *induction;
}

// Logits that are uniform in the first half, and favour the token of 32 positions ago in the second.
// Positions from 31 on predict the second half.
Tensor repeats(const Indices& ids, double logit) {
  std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 32));
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    for (std::int64_t t = 31; t < 63; ++t) {
      logits[static_cast<std::size_t>((b * 63 + t) * 32 + ids[b * 63 + t - 31])] = logit;
    }
  }
  return from_values(logits, {ids.size(0), 63, 32});
}

}  // namespace

TEST_CASE("induction: the second half repeats the first, and every token is judged", "[train][task]") {
  Rng rng(3);
  const Batch batch = task().sample_batch(29, rng);
  REQUIRE(batch.inputs.shape() == Shape{29, 63});
  CHECK(task().vocabulary().size() == 32);
  bool repeated = true, shifted = true;
  for (std::int64_t b = 0; b < 29; ++b) {
    for (std::int64_t t = 0; t < 63; ++t) {
      if (t >= 31) repeated = repeated && batch.targets[b * 63 + t] == batch.inputs[b * 63 + t - 31];
      if (t < 62) shifted = shifted && batch.targets[b * 63 + t] == batch.inputs[b * 63 + t + 1];
    }
  }
  CHECK(repeated);
  CHECK(shifted);
}

TEST_CASE("induction: a model that repeats the first half is right in the second", "[train][task]") {
  Rng rng(5);
  const std::vector<Metric> metrics = task().score([](const Indices& ids) { return repeats(ids, 50); }, rng);
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].value == Approx(0).margin(1e-12));
  CHECK(metrics[0].reached());
  CHECK(metrics[1].value == Approx(std::log(32)).epsilon(1e-6));
  CHECK(metrics[1].right == std::log(32.0));
  CHECK(metrics[1].reached());
}

TEST_CASE("induction: losses are means per token of each half", "[train][task]") {
  Rng rng(7);
  const std::vector<Metric> metrics = task().score([](const Indices& ids) { return repeats(ids, 2); }, rng);
  CHECK(metrics[0].value == Approx(std::log(std::exp(2.0) + 31) - 2).epsilon(1e-6));
  CHECK_FALSE(metrics[0].reached());
  CHECK(metrics[1].value == Approx(std::log(32)).epsilon(1e-6));
}

TEST_CASE("induction: a model that sees the future has a loss below ln V in the first half, and fails",
          "[train][task]") {
  Rng rng(11);
  // Gives the next token probability 1/2, as if a mask let the model see it.
  const LanguageModel cheat = [&](const Indices& ids) {
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 32));
    for (std::int64_t i = 0; i + 1 < ids.numel(); ++i) {
      logits[static_cast<std::size_t>(i * 32 + ids[i + 1])] = std::log(31.0);
    }
    return from_values(logits, {ids.size(0), 63, 32});
  };
  const std::vector<Metric> metrics = task().score(cheat, rng);
  CHECK(metrics[1].value == Approx(std::log(2.0)).epsilon(1e-6));
  CHECK_FALSE(metrics[1].reached());
}
