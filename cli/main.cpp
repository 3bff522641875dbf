#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "fovea/autograd/base/error.h"

namespace {

using namespace fovea::cli;

int complain(int status, const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "fovea: {}\n", text);
  return status;
}

int run(std::vector<std::string> arguments) {
  CLI::App program(
      "Fovea trains small attention models, checks their gradients and shows what they attend to.", "fovea");
  program.set_version_flag("--version", "fovea " FOVEA_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.get_formatter()->column_width(26);
  program.option_defaults()->always_capture_default();
  const Command commands[] = {train_command(program), sample_command(program), eval_command(program),
                              check_command(program), tasks_command(program),  info_command(program)};
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes arguments from the last to the first
    program.parse(arguments);
  } catch (const CLI::Success& help_or_version) {
    return program.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return complain(2, fmt::format("{} (see fovea --help)", error.what()));
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  return complain(2, "no command is given (see fovea --help)");
}

}  // namespace

// Status 2 is for errors that the user can correct: options, files and their contents, a full disk.
int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the shell's size limit gives an error, not a signal
  try {
    const int status = run({argv + 1, argv + argc});
    return std::fflush(stdout) == 0 ? status : complain(2, "can't write to the standard output");
  } catch (const fovea::FileError& error) {
    return complain(2, error.what());
  } catch (const fovea::ValueError& error) {
    return complain(2, error.what());
  } catch (const fovea::IndexError& error) {
    return complain(2, error.what());
  } catch (const std::system_error& error) {
    return complain(2, error.what());
  } catch (const std::exception& error) {
    return complain(1, error.what());
  }
}
