#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/model_text.h"
#include "cli/options.h"
#include "cli/run.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/train/generate/generate.h"

namespace fovea::cli {
namespace {

struct SampleRequest {
  std::string run;
  std::string prompt;
  std::int64_t count = 1;
  std::uint64_t seed = 1;
  bool best = false;
  bool no_cache = false;
  bool raw = false;
  int threads = fovea::threads();
  GenerateOptions options{.tokens = 500};
};

std::vector<std::int64_t> encode_prompt(const Language& language, const std::string& prompt) {
  std::vector<std::int64_t> ids;
  try {
    ids = language.encode(prompt);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("--prompt: {}", error.what()));
  }
  if (ids.empty())
    throw ValueError("--prompt: the prompt is empty, and this run needs something to continue");
  return ids;
}

void generate_one(const LoadedRun& run, std::span<const std::int64_t> prompt, GenerateOptions options,
                  Rng& rng) {
  if (run.settings.text.empty()) {
    // The context of a task is as long as its longest instance, so the answer ends there.
    options.tokens =
        std::min(options.tokens, std::max<std::int64_t>(0, run.context + 1 - std::ssize(prompt)));
  }
  if (const Gpt* gpt = std::get_if<Gpt>(&run.model.network)) {
    generate(*gpt, prompt, options, rng);
  } else {
    const LanguageModel model = [&](const Indices& seen) { return run.model(seen); };
    generate(model, run.context, prompt, options, rng);
  }
}

int sample(const SampleRequest& request) {
  set_threads(request.threads);
  const LoadedRun run = load_run(request.run, request.best);
  const Language language = language_of(run);
  const std::vector<std::int64_t> prompt = encode_prompt(language, request.prompt);
  GenerateOptions options = request.options;
  options.cache = !request.no_cache;
  options.stop = language.stop;
  ModelText output(stdout, request.raw);
  // The prompt is printed with the first token, when no error about either can follow any more.
  std::string before;
  options.on_token = [&](std::int64_t id) { output.print(std::exchange(before, "") + language.decode(id)); };
  Rng rng(request.seed);
  for (std::int64_t i = 0; i < request.count; ++i) {
    before = request.prompt;
    generate_one(run, prompt, options, rng);
    output.print(before);
    output.end_line();
  }
  return 0;
}

}  // namespace

Command sample_command(CLI::App& program) {
  const auto request = std::make_shared<SampleRequest>();
  Sampling& sampling = request->options.sampling;
  CLI::App* parser = program.add_subcommand("sample", "Continue a text with the model of a run");
  add_run(*parser, request->run);
  add_value(*parser, "--prompt", request->prompt, "Text to continue");
  add_value(*parser, "--tokens", request->options.tokens, "Largest number of tokens to generate")
      ->check(count(1));
  add_value(*parser, "--count", request->count, "Number of samples")->check(count(1));
  add_value(*parser, "--temperature", sampling.temperature,
            "Divisor of the logits: below 1 favours likely tokens; 0: always the likeliest")
      ->check(at_least(0));
  add_value(*parser, "--top-k", sampling.top_k, "Choose among the k likeliest tokens; 0: among all")
      ->check(count(0));
  add_value(*parser, "--top-p", sampling.top_p,
            "Choose among the likeliest tokens whose probabilities add up to this")
      ->check(within(0, 1));
  add_value(*parser, "--min-p", sampling.min_p,
            "Choose among tokens whose probability is at least this fraction of the largest")
      ->check(within(0, 1));
  add_value(*parser, "--seed", request->seed, "Seed of the choices; the same seed gives the same text")
      ->check(seed());
  add_switch(*parser, "--best", request->best,
             "Use the checkpoint with the lowest validation loss instead of the last one");
  add_switch(*parser, "--no-cache", request->no_cache,
             "Compute all keys and values again for each token: the same text, slower");
  add_switch(*parser, "--raw", request->raw,
             "Print control characters as they are on a terminal too, which will obey them");
  add_threads(*parser, request->threads);
  return {parser, [request] { return sample(*request); }};
}

}  // namespace fovea::cli
