#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <variant>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/run.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/train/generate/generate.h"

namespace fovea::cli {
namespace {

struct Request {
  std::string run;
  std::string prompt;
  std::int64_t count = 1;
  std::uint64_t seed = 1;
  bool best = false;
  bool no_cache = false;
  int threads = fovea::threads();
  GenerateOptions options{.tokens = 500};
};

void generate_one(const LoadedRun& run, const Language& language, const std::string& prompt,
                  GenerateOptions options, Rng& rng) {
  const std::vector<std::int64_t> ids = language.encode(prompt);
  if (ids.empty()) throw ValueError("the prompt is empty, and this run needs one: give a --prompt");
  if (run.settings.text.empty()) {
    // The context of a task is as long as its longest instance, so the answer ends there.
    options.tokens = std::min(options.tokens, std::max<std::int64_t>(0, run.context + 1 - std::ssize(ids)));
  }
  if (const Gpt* gpt = std::get_if<Gpt>(&run.model.network)) {
    generate(*gpt, ids, options, rng);
  } else {
    const LanguageModel model = [&](const Indices& seen) { return run.model(seen); };
    generate(model, run.context, ids, options, rng);
  }
}

int sample(const Request& request) {
  set_threads(request.threads);
  const LoadedRun run = load_run(request.run, request.best);
  const Language language = language_of(run);
  GenerateOptions options = request.options;
  options.cache = !request.no_cache;
  options.stop = language.stop;
  options.on_token = [&](std::int64_t id) {
    fmt::print("{}", language.decode(id));
    std::fflush(stdout);
  };
  Rng rng(request.seed);
  for (std::int64_t i = 0; i < request.count; ++i) {
    fmt::print("{}", request.prompt);
    generate_one(run, language, request.prompt, options, rng);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace

Command sample_command(CLI::App& program) {
  const auto request = std::make_shared<Request>();
  Sampling& sampling = request->options.sampling;
  CLI::App* parser = program.add_subcommand("sample", "Continue a text with the model of a run");
  parser->add_option("run", request->run, "Folder of the run")->required()->type_name("RUN");
  parser->add_option("--prompt", request->prompt, "Text to continue")->type_name("TEXT")->default_str("");
  parser->add_option("--tokens", request->options.tokens, "Largest number of tokens to generate")
      ->check(count(1));
  parser->add_option("--count", request->count, "Number of samples")->check(count(1));
  parser
      ->add_option("--temperature", sampling.temperature,
                   "Divisor of the logits: below 1 favours likely tokens; 0: always the likeliest")
      ->check(at_least(0));
  parser->add_option("--top-k", sampling.top_k, "Choose among the k likeliest tokens; 0: among all")
      ->check(count(0));
  parser
      ->add_option("--top-p", sampling.top_p,
                   "Choose among the likeliest tokens whose probabilities add up to this")
      ->check(within(0, 1));
  parser
      ->add_option("--min-p", sampling.min_p,
                   "Choose among tokens whose probability is at least this fraction of the largest")
      ->check(within(0, 1));
  parser->add_option("--seed", request->seed, "Seed of the choices; the same seed gives the same text")
      ->check(seed());
  parser->add_flag("--best", request->best,
                   "Use the checkpoint with the lowest validation loss instead of the last one");
  parser->add_flag("--no-cache", request->no_cache,
                   "Compute all keys and values again for each token: the same text, slower");
  add_threads(*parser, request->threads);
  return {parser, [request] { return sample(*request); }};
}

}  // namespace fovea::cli
