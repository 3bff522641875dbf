#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fovea::cli {

/// One command of the program: what it takes, and what it does once that is parsed. `run` returns the exit
/// status: 0 for success, 1 for failure, 2 for bad input.
struct Command {
  CLI::App* parser;
  std::function<int()> run;
};

// Each is made in a file of its own: it adds its parser to the program's.
Command check_command(CLI::App& program);
Command eval_command(CLI::App& program);
Command info_command(CLI::App& program);
Command sample_command(CLI::App& program);
Command tasks_command(CLI::App& program);
/// Also puts the settings of a file, or of the run to be resumed, in front of the program's arguments.
Command train_command(CLI::App& program, std::vector<std::string>& arguments);

}  // namespace fovea::cli
