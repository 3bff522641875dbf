#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/corpus.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"

namespace fovea::cli {
namespace {

struct EvalRequest {
  std::string run;
  std::string text;
  bool best = false;
  int threads = fovea::threads();
};

int evaluate_run(const EvalRequest& request) {
  set_threads(request.threads);
  LoadedRun run = load_run(request.run, request.best);
  if (!request.text.empty()) {
    if (run.settings.text.empty()) throw ValueError("--text: the run has learned a task, and has no text");
    run.settings.text = std::filesystem::absolute(request.text).string();
  } else {
    check_text_is_there(run.settings);
  }
  const Corpus corpus = open_corpus(run.settings, run.metadata);
  check_same_data(corpus, run.metadata);
  fmt::print("{}\n{}\n", detail::printable(run.checkpoint.string()), corpus.description);
  if (!run.settings.text.empty()) {
    if (!corpus.validation)
      throw ValueError("there is no held-out text to evaluate on: the run was trained with --validation 0");
    print_loss(evaluate([&](const Indices& ids) { return run.model(ids); }, corpus.validation));
    return 0;
  }
  return check_score(print_score(run.settings, run.model)) ? 0 : 1;
}

}  // namespace

Command eval_command(CLI::App& program) {
  const auto request = std::make_shared<EvalRequest>();
  CLI::App* parser = program.add_subcommand("eval", "Evaluate the model of a run on held-out data");
  add_run(*parser, request->run);
  add_value(*parser, "--text", request->text, "Where the text of the run is, if it has moved")
      ->check(not_empty())
      ->type_name("FILE");
  add_switch(*parser, "--best", request->best,
             "Use the checkpoint with the lowest validation loss instead of the latest");
  add_threads(*parser, request->threads);
  return {parser, [request] { return evaluate_run(*request); }};
}

}  // namespace fovea::cli
