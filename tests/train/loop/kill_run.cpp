// A run that kill_and_resume kills: `kill_run FOLDER` starts it, or resumes it, and trains to its end. It
// saves often, so that many kills hit it while it saves.
//   kill_run FOLDER N is a smaller run that kills itself at its N-th operation on a file; if N is 0, at none.

#include <fmt/core.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "fovea/layers/gpt.h"
#include "fovea/train/loop/run.h"
#include "fovea/train/loop/trainer.h"
#include "fovea/train/optimizers/schedule.h"

namespace {

using namespace fovea;

long operations_left = 0;

bool is_last() { return operations_left > 0 && --operations_left == 0; }

void die_if_last() {
  if (is_last()) std::raise(SIGKILL);
}

}  // namespace

// These replace the functions of the C library by which Fovea changes files.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the names there are reserved
extern "C" {
ssize_t write(int file, const void* bytes, std::size_t n) {
  if (is_last()) {
    syscall(SYS_write, file, bytes, n / 2);
    std::raise(SIGKILL);
  }
  return syscall(SYS_write, file, bytes, n);
}
int fsync(int file) {
  die_if_last();
  return static_cast<int>(syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  die_if_last();
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
int ftruncate(int file, off_t size) noexcept {
  die_if_last();
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}
int rename(const char* from, const char* to) noexcept {
  die_if_last();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  die_if_last();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int remove(const char* path) noexcept {
  die_if_last();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace {

Batch draw(std::int64_t rows, Rng& rng) {
  const auto fill = [&](std::int64_t* ids) {
    for (std::int64_t i = 0; i < rows * 13; ++i) ids[i] = rng.uniform_int(17);
  };
  const Indices inputs({rows, 13}, fill);
  return {inputs, Indices({rows, 13}, fill)};
}

/// Predicts each token from the one before. It has a single tensor, so that a checkpoint takes few writes.
struct Bigram {
  Tensor W;  // (V, V)
  Dropout drop{0.1};

  Tensor operator()(const Indices& ids) const { return drop(embedding(W, ids)); }
  static void visit(const Bigram& self, Visitor& v) { v("W", self.W); }
};

template <class Model>
void train(const Model& model, Optimizer& optimizer, const TrainerOptions& options,
           const std::filesystem::path& folder, std::int64_t checkpoint_every) {
  const auto source = [](std::int64_t index, Rng& rng) { return std::optional(draw(2 + index % 3, rng)); };
  Trainer trainer(model, optimizer, source, options);
  const Run run(folder, trainer,
                {.resume = latest_checkpoint(folder).has_value(), .checkpoint_every = checkpoint_every});
  trainer.run();
}

TrainerOptions trainer_options() {
  const auto evaluation = [](std::int64_t index) -> std::optional<Batch> {
    Rng of_batch(static_cast<std::uint64_t>(index));
    return index < 2 ? std::optional(draw(3, of_batch)) : std::nullopt;
  };
  return {.steps = 120,
          .learning_rate = Schedule({.kind = LrSchedule::cosine, .rate = 3e-3, .steps = 120, .warmup = 3}),
          .accumulate = 2,
          .clip = 1,
          .ema_decay = 0.9,
          .skip_loss_above_sigma = 2,
          .evaluation = evaluation,
          .evaluate_every = 7};
}

void usual_run(const std::filesystem::path& folder) {
  Rng rng(5);
  const Gpt model({.vocabulary = 17,
                   .context = 13,
                   .d_model = 32,
                   .heads = 2,
                   .layers = 2,
                   .block = {.attention = {.dropout = 0.1}, .dropout = 0.1}},
                  rng);
  AdamW optimizer(named_parameters(model));
  train(model, optimizer, trainer_options(), folder, 5);
}

void small_run(const std::filesystem::path& folder) {
  Rng rng(5);
  const Bigram model{parameter(randn({17, 17}, rng))};
  Sgd optimizer(named_parameters(model), {.momentum = 0.9});
  TrainerOptions options = trainer_options();
  options.steps = 5;
  options.evaluate_every = 3;
  train(model, optimizer, options, folder, 2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  try {
    if (argc == 3) {
      operations_left = std::stol(argv[2]);
      small_run(argv[1]);
    } else {
      usual_run(argv[1]);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "kill_run: {}\n", error.what());
    return 1;
  }
}
