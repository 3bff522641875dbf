#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "autograd/base/text.h"
#include "cli/nearest.h"
#include "fovea/autograd/base/error.h"

namespace fovea::cli {
namespace {

using detail::in_quotes;

// The words after a command, read one by one.
class CommandArguments {
 public:
  CommandArguments(CLI::App& command, std::vector<std::string> words)
      : command_(command), words_(std::move(words)) {}

  std::vector<std::string> prepare() {
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (word == "--") {
        prepared_.push_back(word);
        while (next_ < words_.size()) add_positional(words_[next_++]);
      } else if (word.size() > 1 && word.front() == '-') {
        add_option(word);
      } else {
        add_positional(word);
      }
    }
    return std::move(prepared_);
  }

 private:
  [[noreturn]] void complain(const std::string& what) const {
    throw ValueError(fmt::format("{} (see fovea {} --help)", what, command_.get_name()));
  }

  void add_positional(const std::string& word) {
    const auto places =
        command_.get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (positionals_++ == places.size()) complain(fmt::format("{} is one word too many", in_quotes(word)));
    prepared_.push_back(word);
  }

  void add_option(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const CLI::Option& option = option_called(name);
    const bool is_switch = option.get_items_expected_max() == 0;
    if (equals == word.size()) {
      prepared_.push_back(word);
      if (!is_switch) prepared_.push_back(following_value(name));
    } else if (equals + 1 < word.size()) {
      prepared_.push_back(word);
    } else if (is_switch) {
      complain(fmt::format("{0} is followed by no value: write {1}, or {1}=false", word, name));
    } else {
      prepared_.insert(prepared_.end(), {name, ""});
    }
  }

  const CLI::Option& option_called(const std::string& name) const {
    if (const CLI::Option* option = std::as_const(command_).get_option_no_throw(name)) return *option;
    std::vector<std::string> names;
    for (const CLI::Option* option : std::as_const(command_).get_options())
      names.push_back(option->get_name());
    complain(fmt::format("there is no option {}{}", detail::printable(name, 80), did_you_mean(name, names)));
  }

  std::string following_value(const std::string& name) {
    if (next_ == words_.size()) complain(fmt::format("{} needs a value", name));
    const std::string& value = words_[next_];
    if (value.size() > 2 && value.starts_with("--")) {
      complain(
          fmt::format("{0} needs a value, and {1} follows; a value that begins with -- is written {0}=--...",
                      name, detail::printable(value, 80)));
    }
    return words_[next_++];
  }

  CLI::App& command_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  std::size_t positionals_ = 0;
  std::vector<std::string> prepared_;
};

}  // namespace

std::vector<std::string> prepared_arguments(CLI::App& program, std::vector<std::string> words) {
  if (words.empty()) return words;
  const std::string first = words.front();
  if (std::as_const(program).get_option_no_throw(first)) return {first};  // --help, --version
  const std::vector<CLI::App*> commands = program.get_subcommands([](const CLI::App*) { return true; });
  const auto command =
      std::ranges::find(commands, first, [](const CLI::App* known) { return known->get_name(); });
  if (command == commands.end()) {
    std::vector<std::string> names{"--help", "--version"};
    for (const CLI::App* known : commands) names.push_back(known->get_name());
    throw ValueError(fmt::format("there is no command {}{} (see fovea --help)", in_quotes(first),
                                 did_you_mean(first, names)));
  }
  words.erase(words.begin());
  std::vector<std::string> prepared = CommandArguments(**command, std::move(words)).prepare();
  prepared.insert(prepared.begin(), first);
  return prepared;
}

}  // namespace fovea::cli
