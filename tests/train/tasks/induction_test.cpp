#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/task.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

const Task& task() {
  static const std::unique_ptr<Task> induction = make_task("induction");
  return *induction;
}

// The length of the block that sequence b repeats.
std::int64_t period_of(const Indices& ids, std::int64_t b) {
  std::int64_t period = 1;
  while (ids[b * 63 + period] != ids[b * 63]) ++period;
  return period;
}

// Logits that favour the token after the last occurrence of the present one; uniform where there is none.
Tensor repeats(const Indices& ids, double logit) {
  std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 32));
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const std::int64_t period = period_of(ids, b);
    for (std::int64_t t = period; t < 63; ++t) {
      logits[static_cast<std::size_t>((b * 63 + t) * 32 + ids[b * 63 + t - period + 1])] = logit;
    }
  }
  return from_values(logits, {ids.size(0), 63, 32});
}

}  // namespace

TEST_CASE("induction: a block of different tokens is repeated, and its length differs", "[train][task]") {
  Rng rng(3);
  const Batch batch = task().sample_batch(293, rng);
  REQUIRE(batch.inputs.shape() == Shape{293, 63});
  CHECK(task().vocabulary().size() == 32);
  std::map<std::int64_t, int> periods;
  bool different = true, repeated = true, shifted = true;
  for (std::int64_t b = 0; b < 293; ++b) {
    const std::int64_t period = period_of(batch.inputs, b);
    ++periods[period];
    const auto block =
        batch.inputs.values().subspan(static_cast<std::size_t>(b * 63), static_cast<std::size_t>(period));
    different = different && std::set(block.begin(), block.end()).size() == block.size();
    for (std::int64_t t = 0; t < 63; ++t) {
      if (t >= period) repeated = repeated && batch.inputs[b * 63 + t] == batch.inputs[b * 63 + t - period];
      if (t < 62) shifted = shifted && batch.targets[b * 63 + t] == batch.inputs[b * 63 + t + 1];
    }
  }
  CHECK(different);
  CHECK(repeated);
  CHECK(shifted);
  // 17 lengths: none is drawn much more often than 293 / 17 times.
  CHECK(periods.size() == 17);
  CHECK(periods.begin()->first == 8);
  CHECK(periods.rbegin()->first == 24);
  CHECK(std::ranges::all_of(periods, [](const auto& entry) { return entry.second < 40; }));
}

TEST_CASE("induction: a model that looks the present token up is right in the repeats", "[train][task]") {
  Rng rng(5);
  const std::vector<Metric> metrics = task().score([](const Indices& ids) { return repeats(ids, 50); }, rng);
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].value == Approx(0).margin(1e-12));
  CHECK(metrics[0].reached());
  CHECK(metrics[1].value == Approx(std::log(32)).epsilon(1e-6));
  // ln(31! / 24!) / 7: each of the tokens 2 to 8 is one of those not seen.
  CHECK(metrics[1].right == Approx((std::lgamma(32) - std::lgamma(25)) / 7).epsilon(1e-12));
  CHECK(metrics[1].reached());
}

TEST_CASE("induction: losses are means per token", "[train][task]") {
  Rng rng(7);
  const std::vector<Metric> metrics = task().score([](const Indices& ids) { return repeats(ids, 2); }, rng);
  CHECK(metrics[0].value == Approx(std::log(std::exp(2.0) + 31) - 2).epsilon(1e-6));
  CHECK_FALSE(metrics[0].reached());
  CHECK(metrics[1].value == Approx(std::log(32)).epsilon(1e-6));
}

TEST_CASE("induction: a model that copies from a fixed distance fails", "[train][task]") {
  Rng rng(13);
  const LanguageModel fixed = [](const Indices& ids) {
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 32));
    for (std::int64_t i = 15; i < ids.numel(); ++i) {
      logits[static_cast<std::size_t>(i * 32 + ids[i - 15])] = 5;
    }
    return from_values(logits, {ids.size(0), 63, 32});
  };
  CHECK(task().score(fixed, rng)[0].value > 2);
}

TEST_CASE("induction: a model that sees the future has too low a loss of new tokens, and fails",
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
