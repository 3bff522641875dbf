#include <CLI/CLI.hpp>
#include <fmt/format.h>

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

struct Request {
  std::string run;
  bool best = false;
  int threads = fovea::threads();
};

int evaluate_run(const Request& request) {
  set_threads(request.threads);
  const LoadedRun run = load_run(request.run, request.best);
  const Corpus corpus = open_corpus(run.settings);
  check_same_data(corpus, run.metadata);
  fmt::print("{}\n{}\n", run.checkpoint.string(), corpus.description);
  if (!run.settings.text.empty()) {
    if (!corpus.validation)
      throw ValueError("there is no held-out text to evaluate on: the run was trained with --validation 0");
    print_loss(evaluate([&](const Indices& ids) { return run.model(ids); }, corpus.validation));
    return 0;
  }
  return print_score(run.settings, run.model) ? 0 : 1;
}

}  // namespace

Command eval_command(CLI::App& program) {
  const auto request = std::make_shared<Request>();
  CLI::App* parser = program.add_subcommand("eval", "Evaluate the model of a run on held-out data");
  parser->add_option("run", request->run, "Folder of the run")->required()->type_name("RUN");
  parser->add_flag("--best", request->best,
                   "Use the checkpoint with the lowest validation loss instead of the latest");
  add_threads(*parser, request->threads);
  return {parser, [request] { return evaluate_run(*request); }};
}

}  // namespace fovea::cli
