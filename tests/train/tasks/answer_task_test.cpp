#include "fovea/train/tasks/answer_task.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// The answer is the next two of 101 words in a ring.
AnswerTask::Definition ring() {
  std::vector<std::string> words;
  for (int i = 0; i < 101; ++i) words.push_back("w" + std::to_string(i));
  return {
      .summary = "Say the next two",
      .vocabulary = Vocabulary(words),
      .instance =
          [](Rng& rng) {
            const std::int64_t at = rng.uniform_int(101);
            return std::vector<PromptAnswer>{{.prompt = {at}, .answer = {(at + 1) % 101, (at + 2) % 101}}};
          },
      .held_out = 0.3,
      .metric = "pairs right",
      .allowed = 0.25};
}

}  // namespace

TEST_CASE("AnswerTask: summary, vocabulary and batches follow the definition", "[train][task]") {
  const AnswerTask task(ring());
  CHECK(task.summary() == "Say the next two");
  CHECK(task.vocabulary().size() == 101);
  CHECK(task.context() == 2);
  Rng rng(3);
  const Batch batch = task.sample_batch(5, rng);
  REQUIRE(batch.inputs.shape() == Shape{5, 2});
  for (std::int64_t b = 0; b < 5; ++b) {
    CHECK(batch.inputs[2 * b + 1] == (batch.inputs[2 * b] + 1) % 101);
    CHECK(batch.targets[2 * b] == (batch.inputs[2 * b] + 1) % 101);
    CHECK(batch.targets[2 * b + 1] == (batch.inputs[2 * b] + 2) % 101);
  }
}

TEST_CASE("AnswerTask: only a whole answer counts, under the name and allowance of the definition",
          "[train][task]") {
  const AnswerTask task(ring());
  Rng rng(5), again(5);
  // This model is wrong only about the first word after an even one.
  const LanguageModel model = [](const Indices& ids) {
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 101));
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      const std::int64_t step = i % 2 == 0 && ids[i] % 2 == 0 ? 5 : 1;
      logits[static_cast<std::size_t>(i * 101 + (ids[i] + step) % 101)] = 2.5;
    }
    return from_values(logits, {ids.size(0), 2, 101});
  };
  const std::vector<Metric> metrics = task.score(model, rng);
  int odd = 0;
  for (int i = 0; i < 8; ++i) {
    const Batch batch = task.unseen_batch(128, again);
    for (std::int64_t b = 0; b < 128; ++b) odd += batch.inputs[2 * b] % 2 == 1 ? 1 : 0;
  }
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].name == "pairs right");
  CHECK(metrics[0].value == odd / 1024.0);
  CHECK(metrics[0].right == 1);
  CHECK(metrics[0].allowed == 0.25);
}

TEST_CASE("AnswerTask: in an instance of several prompts only the answers are judged", "[train][task]") {
  AnswerTask::Definition definition = ring();
  definition.instance = [](Rng& rng) {
    const std::int64_t at = rng.uniform_int(90);
    return std::vector<PromptAnswer>{{.prompt = {at, at + 1}, .answer = {at + 2}},
                                     {.prompt = {at + 3}, .answer = {at + 4, at + 5}}};
  };
  const AnswerTask task(definition);
  CHECK(task.context() == 5);
  Rng rng(11);
  const Batch batch = task.sample_batch(3, rng);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t at = batch.inputs[5 * b];
    CHECK(batch.inputs[5 * b + 4] == at + 4);
    CHECK(batch.targets[5 * b] == ignored_target);
    CHECK(batch.targets[5 * b + 1] == at + 2);
    CHECK(batch.targets[5 * b + 2] == ignored_target);
    CHECK(batch.targets[5 * b + 3] == at + 4);
    CHECK(batch.targets[5 * b + 4] == at + 5);
  }
}

TEST_CASE("AnswerTask: a faulty definition is refused when the task is made", "[train][task]") {
  AnswerTask::Definition definition = ring();
  definition.held_out = GENERATE(0.0, 1.0);
  CHECK_THROWS_AS(AnswerTask(definition), ValueError);
  definition = ring();
  definition.instance = [](Rng&) { return std::vector<PromptAnswer>{{.prompt = {}, .answer = {1}}}; };
  CHECK_THROWS_AS(AnswerTask(definition), ValueError);
  definition.instance = [](Rng&) { return std::vector<PromptAnswer>{{.prompt = {1}, .answer = {}}}; };
  CHECK_THROWS_AS(AnswerTask(definition), ValueError);
  definition.instance = [](Rng&) { return std::vector<PromptAnswer>{}; };
  CHECK_THROWS_AS(AnswerTask(definition), ValueError);
}

TEST_CASE("AnswerTask: instances of different lengths are refused", "[train][task]") {
  AnswerTask::Definition definition = ring();
  definition.instance = [](Rng& rng) {
    const std::vector<std::int64_t> prompt(rng.uniform() < 0.5 ? 2 : 3, rng.uniform_int(101));
    return std::vector<PromptAnswer>{{.prompt = prompt, .answer = {1}}};
  };
  Rng rng(7);
  CHECK_THROWS_AS(AnswerTask(definition).sample_batch(50, rng), ValueError);
}

TEST_CASE("AnswerTask: it shows a prompt and what the model answers", "[train][task]") {
  const AnswerTask task(ring());
  // Says the next word, or the one after that.
  const auto counting_by = [](std::int64_t step) {
    return LanguageModel([step](const Indices& ids) {
      std::vector<double> logits(static_cast<std::size_t>(ids.numel() * 101));
      for (std::int64_t i = 0; i < ids.numel(); ++i) {
        logits[static_cast<std::size_t>(i * 101 + (ids[i] + step) % 101)] = 1;
      }
      return from_values(logits, {ids.size(0), ids.size(1), 101});
    });
  };
  Rng rng(17), again(17), once_more(17);
  const std::int64_t at = task.unseen_batch(1, rng).inputs[0];
  const auto word = [&](std::int64_t i) { return "w" + std::to_string((at + i) % 101); };
  const std::string prompt = "prompt  " + word(0) + "\nanswer  ";
  CHECK(task.exhibits({counting_by(1), {}}, again).at(0).text ==
        prompt + word(1) + " " + word(2) + ", which is right");
  CHECK(task.exhibits({counting_by(2), {}}, once_more).at(0).text ==
        prompt + word(2) + " " + word(4) + ", but " + word(1) + " " + word(2) + " is right");
}
