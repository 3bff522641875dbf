#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace fovea::cli {

/// One command of the program: the parser of its options, and what it does after parsing. `run` returns the
/// exit status: 0 for success, 1 for failure, 2 for bad input.
struct Command {
  CLI::App* parser;
  std::function<int()> run;
};

// Each of these adds a command to the program's parser. Each is defined in a file of its own.
Command check_command(CLI::App& program);
Command eval_command(CLI::App& program);
Command info_command(CLI::App& program);
Command runs_command(CLI::App& program);
Command sample_command(CLI::App& program);
Command tasks_command(CLI::App& program);
Command train_command(CLI::App& program);

}  // namespace fovea::cli
