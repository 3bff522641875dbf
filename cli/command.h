#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace fovea::cli {

/// One command of the program: what it takes, and what it does once that is parsed. `run` returns the exit
/// status: 0 for success, 1 for failure, 2 for bad input.
struct Command {
  CLI::App* parser;
  std::function<int()> run;
};

// Each is made in a file of its own: it adds its parser to the program's.
Command check_command(CLI::App& program);
Command train_command(CLI::App& program);

}  // namespace fovea::cli
