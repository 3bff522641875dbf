#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/command.h"

namespace {

int complain(int status, const std::string& text) {
  fmt::print(stderr, "fovea: {}\n", text);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fovea::cli;
  try {
    CLI::App program("Fovea trains small attention models, checks gradients and shows what models attend to.",
                     "fovea");
    program.set_version_flag("--version", "fovea " FOVEA_VERSION, "Print the version and exit");
    program.set_help_flag("-h,--help", "Print this help and exit");
    program.get_formatter()->column_width(26);
    program.option_defaults()->always_capture_default();
    const Command commands[] = {train_command(program), check_command(program)};
    try {
      program.parse(argc, argv);
    } catch (const CLI::Success& help_or_version) {
      return program.exit(help_or_version);
    } catch (const CLI::ParseError& error) {
      return complain(2, fmt::format("{} (see fovea --help)", error.what()));
    }
    for (const Command& command : commands) {
      if (command.parser->parsed()) return command.run();
    }
    return complain(2, "no command is given (see fovea --help)");
  } catch (const std::exception& error) {
    return complain(1, error.what());
  }
}
