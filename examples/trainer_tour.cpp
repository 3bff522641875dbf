// A run in a folder is trained, interrupted and resumed, and its best model is loaded.

#include <fmt/core.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "fovea/fovea.h"

using namespace fovea;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A text of sums such as "3+4=07.".
std::string sums() {
  std::string text;
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t a = rng.uniform_int(10), b = rng.uniform_int(10);
    text += fmt::format("{}+{}={:02}. ", a, b, a + b);
  }
  return text;
}

// Trains in a folder, from its latest checkpoint if there is one, and is interrupted at step `stop_at`.
void train_in(const std::filesystem::path& folder, Trainer& trainer, const Tokenizer& tokenizer,
              std::int64_t stop_at) {
  // [run]
  const Run run(folder, trainer,
                {.resume = latest_checkpoint(folder).has_value(),
                 .checkpoint_every = 25,
                 .metadata = {{"tokenizer", tokenizer.to_json()}}});
  const Interrupt interrupt;
  trainer.stop_when(interrupted(interrupt));
  Progress progress(stdout);
  trainer.on_step(std::ref(progress));
  trainer.on_evaluation(std::ref(progress));
  // [run]

  // As if someone pressed Ctrl-C.
  trainer.on_step([&](const StepReport& report) {
    if (report.step == stop_at) std::raise(SIGINT);
  });
  // [train]
  fmt::print("{}\n", trainer.summary());
  const StopReason reason = trainer.run();
  // [train]
  fmt::print("{} after {} steps in {:.1f} s\n\n", is_final(reason) ? "complete" : "stopped",
             trainer.status().step, progress.seconds());
}

void train(const std::filesystem::path& folder, std::int64_t stop_at) {
  const std::string text = sums();
  const CharacterTokenizer tokenizer(text);
  const Split<TokenData> data = split(TokenData(text, tokenizer), 0.1);
  Rng rng(1);
  const Gpt model({.vocabulary = tokenizer.size(),
                   .context = 16,
                   .d_model = 16,
                   .heads = 2,
                   .layers = 1,
                   .block = {.dropout = 0.1}},
                  rng);
  // [trainer]
  constexpr std::int64_t steps = 200;
  AdamW optimizer(named_parameters(model), {.weight_decay = 0.1});
  const Blocks blocks{.batch = 8, .context = 16};
  const BatchSource source = [&](std::int64_t, Rng& draws) {
    return random_batch(data.train, blocks, draws);
  };
  const EvaluationSource evaluation = [&](std::int64_t index) -> std::optional<Batch> {
    if (index == batch_count(data.validation, blocks)) return std::nullopt;
    return batch_at(data.validation, blocks, index);
  };
  Trainer trainer(
      model, optimizer, source,
      {.steps = steps,
       .learning_rate = Schedule(
           {.kind = LrSchedule::cosine, .rate = 1e-2, .final_rate = 1e-3, .steps = steps, .warmup = 20}),
       .accumulate = 2,
       .clip = 1,
       .evaluation = evaluation,
       .evaluate_every = 50});
  // [trainer]
  train_in(folder, trainer, tokenizer, stop_at);
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "fovea_trainer_tour";
  std::filesystem::remove_all(folder);
  train(folder / "whole", -1);
  train(folder / "stopped", 70);
  train(folder / "stopped", -1);
  const bool same =
      bytes_of(folder / "whole/log.jsonl") == bytes_of(folder / "stopped/log.jsonl") &&
      bytes_of(*latest_checkpoint(folder / "whole")) == bytes_of(*latest_checkpoint(folder / "stopped"));
  fmt::print("the run that was interrupted left {}\n", same ? "the same bits" : "OTHER BITS");

  // [load_model]
  const std::filesystem::path best = *best_checkpoint(folder / "whole");
  const Gpt model = load_gpt(best);  // made with the options that it was saved with
  const auto tokenizer = tokenizer_from_json(read_safetensors_header(best).metadata.at("tokenizer"));
  // [load_model]
  std::filesystem::remove_all(folder);
  return same ? 0 : 1;
}
