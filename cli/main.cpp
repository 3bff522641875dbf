#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "autograd/base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/streams.h"
#include "fovea/autograd/base/error.h"

namespace {

using namespace fovea::cli;

// The length of the name of a function in brackets, and the space after it, that a text begins with: 0 if it
// does not.
std::size_t function_length(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:~";
  if (!text.starts_with('[')) return 0;
  const std::size_t end = std::min(text.find_first_not_of(letters, 1), text.size());
  return end > 1 && text.substr(end).starts_with("] ") ? end + 2 : 0;
}

// The text of an error without the names of the library's functions, which stand before it and before the
// text of an error within.
std::string without_functions(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    text.erase(at, function_length(std::string_view(text).substr(at)));
    const std::size_t colon = text.find(": ", at);
    at = colon == std::string::npos ? text.size() : colon + 2;
  }
  return text;
}

// The first two lines of an error as one, and how many there are besides.
std::string in_one_line(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  const std::size_t shown = std::min<std::size_t>(lines.size(), 2);
  std::string one =
      fmt::format("{}", fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < lines.size()) one += fmt::format("; and {} more", lines.size() - shown);
  return fovea::detail::printable(one, 2000);
}

// Says in one line what is wrong.
int complain(int status, const std::string& text) {
  print_error(in_one_line(without_functions(text)));
  return status;
}

int run(std::vector<std::string> arguments) {
  CLI::App program(
      "Fovea trains small attention models, checks their gradients and shows what they attend to.", "fovea");
  program.set_version_flag("--version", "fovea " FOVEA_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.get_formatter()->column_width(26);
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const Command commands[] = {train_command(program), sample_command(program), eval_command(program),
                              check_command(program), tasks_command(program),  runs_command(program),
                              info_command(program)};
  try {
    arguments = prepared_arguments(program, std::move(arguments));
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes arguments from the last to the first
    program.parse(arguments);
  } catch (const CLI::Success& help_or_version) {
    return program.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> named = program.get_subcommands();
    const std::string command = named.empty() ? "" : named.front()->get_name() + " ";
    return complain(2, fmt::format("{} (see fovea {}--help)", error.what(), command));
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  return complain(2, "no command is given (see fovea --help)");
}

}  // namespace

// Status 1 is for training that diverged, and 2 for errors that the user can correct: options, files and
// their contents, a full disk.
int main(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the shell's size limit gives an error, not a signal
  try {
    const int status = run({argv + 1, argv + argc});
    return status != 0 || output_is_written() ? status : complain(2, "can't write to the standard output");
  } catch (const fovea::NonFiniteError& error) {
    return complain(1, error.what());
  } catch (const fovea::Error& error) {
    return complain(2, error.what());
  } catch (const std::system_error& error) {
    return complain(2, error.what());
  } catch (const std::bad_alloc&) {
    return complain(2,
                    "there is not enough memory for what was asked: make the model, batch or data smaller");
  } catch (const std::exception& error) {
    return complain(1, error.what());
  }
}
