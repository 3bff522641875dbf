#include <map>
#include <set>

#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/task.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// 8 keys with their values, then the keys again with their values; the last value is only a target.
constexpr std::int64_t T = 31;

const Task& task() {
  static const std::unique_ptr<Task> recall = make_task("associative-recall");
  return *recall;
}

bool is_letter(std::int64_t id) {
  return task().vocabulary().word(id).find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

// The value that followed the first occurrence of the key at position t.
std::int64_t recalled(const Indices& ids, std::int64_t b, std::int64_t t) {
  for (std::int64_t i = 0; i < 16; i += 2) {
    if (ids[b * T + i] == ids[b * T + t]) return ids[b * T + i + 1];
  }
  return -2;
}

// A model that recalls the values of all keys but the `forgotten` last ones.
LanguageModel memory(std::int64_t forgotten) {
  return [=](const Indices& ids) {
    const std::int64_t V = task().vocabulary().size();
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * V));
    for (std::int64_t b = 0; b < ids.size(0); ++b) {
      for (std::int64_t t = 16; t < T - 2 * forgotten; t += 2) {
        logits[static_cast<std::size_t>((b * T + t) * V + recalled(ids, b, t))] = 3;
      }
    }
    return from_values(logits, {ids.size(0), T, V});
  };
}

}  // namespace

TEST_CASE("associative-recall: each of 8 keys is asked for once, and its value is the answer",
          "[train][task]") {
  Rng rng(3);
  const bool unseen = GENERATE(false, true);
  const Batch batch = unseen ? task().unseen_batch(103, rng) : task().sample_batch(103, rng);
  REQUIRE(batch.inputs.shape() == Shape{103, T});
  for (std::int64_t b = 0; b < 103; ++b) {
    std::set<std::int64_t> told, asked;
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t id = batch.inputs[b * T + t], target = batch.targets[b * T + t];
      REQUIRE(is_letter(id) == (t % 2 == 0));
      if (t % 2 == 0) (t < 16 ? told : asked).insert(id);
      REQUIRE(target == (t >= 16 && t % 2 == 0 ? recalled(batch.inputs, b, t) : ignored_target));
    }
    REQUIRE(told.size() == 8);
    REQUIRE(asked == told);
  }
}

TEST_CASE("associative-recall: the order of keys and of questions is random", "[train][task]") {
  Rng rng(5);
  const Batch batch = task().sample_batch(2003, rng);
  std::map<std::int64_t, int> first_asked;
  for (std::int64_t b = 0; b < 2003; ++b) {
    for (std::int64_t i = 0; i < 16; i += 2) {
      if (batch.inputs[b * T + i] == batch.inputs[b * T + 16]) ++first_asked[i];
    }
  }
  REQUIRE(first_asked.size() == 8);
  // Four standard deviations of a count.
  for (const auto& [place, times] : first_asked) CHECK(times == Approx(2003 / 8.0).margin(60));
}

TEST_CASE("associative-recall: a model with a memory reaches the right value, and one that forgets does not",
          "[train][task]") {
  Rng rng(7);
  const std::vector<Metric> all = task().score(memory(0), rng);
  REQUIRE(all.size() == 1);
  CHECK(all[0].value == 1);
  CHECK(all[0].reached());
  CHECK_FALSE(task().score(memory(1), rng)[0].reached());
}
