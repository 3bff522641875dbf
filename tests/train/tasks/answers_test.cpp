#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/task.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Words = std::vector<std::string>;

// A task with one prompt and one answer, and another way to find the answer from the words of the prompt.
struct Row {
  std::string name;
  std::size_t prompt;  // the number of its words
  std::size_t answer;
  std::function<Words(const Words& prompt)> solve;
};

// The words before the sign at the end.
Words before_sign(const Words& prompt) { return {prompt.begin(), prompt.end() - 1}; }

std::string joined(const Words& words, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += words[i];
  return text;
}

Words counted_out(const Words& prompt) {
  std::map<int, int> times;
  for (const std::string& word : before_sign(prompt)) ++times[std::stoi(word)];
  Words sorted;
  for (const auto& [number, count] : times) sorted.insert(sorted.end(), count, std::to_string(number));
  return sorted;
}

Words summed(const Words& prompt) {
  std::string sum = std::to_string(std::stoi(joined(prompt, 0, 4)) + std::stoi(joined(prompt, 5, 9)));
  if (sum.size() == 4) sum = "0" + sum;
  Words digits;
  for (auto digit = sum.rbegin(); digit != sum.rend(); ++digit) digits.emplace_back(1, *digit);
  return digits;
}

Words parities(const Words& prompt) {
  Words answer;
  for (std::size_t n = 1; n <= 16; ++n) {
    answer.push_back(std::count(prompt.begin(), prompt.begin() + static_cast<long>(n), "1") % 2 ? "1" : "0");
  }
  return answer;
}

// Removes neighbouring pairs "()" until there are none.
Words balanced(const Words& prompt) {
  std::string text = joined(prompt, 0, 24);
  for (std::size_t at = text.find("()"); at != std::string::npos; at = text.find("()")) text.erase(at, 2);
  return {text.empty() ? "yes" : "no"};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"copy", 17, 16, before_sign},
      {"reverse", 17, 16, [](const Words& prompt) { return Words(prompt.rbegin() + 1, prompt.rend()); }},
      {"sorting", 17, 16, counted_out},
      {"modular-addition", 4, 1,
       [](const Words& prompt) {
         return Words{std::to_string((std::stoi(prompt[0]) + std::stoi(prompt[2])) % 97)};
       }},
      {"parity", 17, 16, parities},
      {"balanced-brackets", 25, 1, balanced},
      {"addition", 10, 5, summed},
  };
  return all;
}

Row any_row() {
  return rows()[static_cast<std::size_t>(GENERATE_COPY(range(0, static_cast<int>(rows().size()))))];
}

Words words_of(const Task& task, const Indices& ids, std::int64_t b, std::size_t begin, std::size_t end) {
  Words words;
  for (std::size_t i = begin; i < end; ++i) {
    words.push_back(task.vocabulary().word(ids[b * ids.size(1) + static_cast<std::int64_t>(i)]));
  }
  return words;
}

// A model that solves each prompt, except that the last word of every `wrong_every`-th answer is wrong.
LanguageModel solver(const Task& task, const Row& row, std::int64_t wrong_every = 1 << 20) {
  return [&task, row, wrong_every](const Indices& ids) {
    const std::int64_t T = ids.size(1), V = task.vocabulary().size();
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * V));
    for (std::int64_t b = 0; b < ids.size(0); ++b) {
      const Words answer = row.solve(words_of(task, ids, b, 0, row.prompt));
      for (std::size_t i = 0; i < answer.size(); ++i) {
        std::int64_t id = *task.vocabulary().find(answer[i]);
        if (i + 1 == answer.size() && b % wrong_every == wrong_every - 1) id = (id + 1) % V;
        const auto at = b * T + static_cast<std::int64_t>(row.prompt - 1 + i);
        logits[static_cast<std::size_t>(at * V + id)] = 1;
      }
    }
    return from_values(logits, {ids.size(0), T, V});
  };
}

}  // namespace

TEST_CASE("answer tasks: the judged targets are the answer, found in another way", "[train][task]") {
  const Row row = any_row();
  CAPTURE(row.name);
  const std::unique_ptr<Task> task = make_task(row.name);
  Rng rng(23);
  const bool unseen = GENERATE(false, true);
  const Batch batch = unseen ? task->unseen_batch(101, rng) : task->sample_batch(101, rng);
  REQUIRE(batch.inputs.size(1) == static_cast<std::int64_t>(row.prompt + row.answer - 1));
  for (std::int64_t b = 0; b < 101; ++b) {
    const Words prompt = words_of(*task, batch.inputs, b, 0, row.prompt);
    const Words answer = words_of(*task, batch.targets, b, row.prompt - 1, row.prompt - 1 + row.answer);
    REQUIRE(answer == row.solve(prompt));
    for (std::size_t i = 0; i + 1 < row.prompt; ++i) {
      REQUIRE(batch.targets[b * batch.targets.size(1) + static_cast<std::int64_t>(i)] == ignored_target);
    }
  }
}

TEST_CASE("answer tasks: a model that solves them reaches the right value", "[train][task]") {
  const Row row = any_row();
  CAPTURE(row.name);
  const std::unique_ptr<Task> task = make_task(row.name);
  Rng rng(29);
  const std::vector<Metric> metrics = task->score(solver(*task, row), rng);
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].value == 1);
  CHECK(metrics[0].reached());
}

TEST_CASE("answer tasks: one wrong word makes the answer wrong", "[train][task]") {
  const Row row = any_row();
  CAPTURE(row.name);
  const std::unique_ptr<Task> task = make_task(row.name);
  Rng rng(31);
  const std::vector<Metric> metrics = task->score(solver(*task, row, 4), rng);
  CHECK(metrics[0].value == 0.75);
  CHECK_FALSE(metrics[0].reached());
}

TEST_CASE("modular-addition: half of all pairs are held out, and the others are not", "[train][task]") {
  const std::unique_ptr<Task> task = make_task("modular-addition");
  Rng rng(37);
  const auto pairs = [&](const Batch& batch) {
    std::set<std::pair<std::int64_t, std::int64_t>> all;
    for (std::int64_t b = 0; b < batch.inputs.size(0); ++b) {
      all.emplace(batch.inputs[4 * b], batch.inputs[4 * b + 2]);
    }
    return all;
  };
  // With this many draws, a pair is missed with probability e^-13.
  const auto seen = pairs(task->sample_batch(61001, rng));
  const auto unseen = pairs(task->unseen_batch(61001, rng));
  CHECK(seen.size() + unseen.size() == 97 * 97);
  CHECK(static_cast<double>(unseen.size()) == Approx(97 * 97 / 2.0).epsilon(0.03));
  CHECK(std::ranges::none_of(unseen, [&](const auto& pair) { return seen.contains(pair); }));
}

TEST_CASE("balanced-brackets: half are balanced, drawn uniformly, and the others have 12 of each bracket",
          "[train][task]") {
  const std::unique_ptr<Task> task = make_task("balanced-brackets");
  constexpr std::int64_t count = 10007;
  Rng rng(43);
  const Batch batch = task->sample_batch(count, rng);
  int yes = 0, begins_with_pair = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    const Words words = words_of(*task, batch.inputs, b, 0, 24);
    REQUIRE(std::ranges::count(words, "(") == 12);
    REQUIRE(std::ranges::count(words, ")") == 12);
    if (balanced(words) != Words{"yes"}) continue;
    ++yes;
    begins_with_pair += words[1] == ")" ? 1 : 0;
  }
  // Four standard deviations of this share.
  CHECK(static_cast<double>(yes) / count == Approx(0.5).margin(0.02));
  // Catalan numbers: 58,786 of the 208,012 balanced sequences begin with "()".
  CHECK(static_cast<double>(begins_with_pair) / yes == Approx(58786.0 / 208012).margin(0.026));
}
