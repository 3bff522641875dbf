#pragma once

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Kinds of command-line options. Each writes one variable, and its default in the help text is the value
/// that the variable has when CLI11 captures it.
namespace fovea::cli {

// --- Checks ----------------------------------------------------------------------------------------------
// They have no description, which would crowd out the words in the help text.

/// Accepts a whole number in a range.
CLI::Validator count(std::int64_t low, std::int64_t high = 1'000'000'000);
/// Accepts a seed of random numbers, a whole number from 0.
CLI::Validator seed();
/// Accepts a finite number in a range.
CLI::Validator within(double low, double high);
/// Accepts a finite number that is `low` or more.
CLI::Validator at_least(double low);
/// Accepts a finite number above 0.
CLI::Validator positive();

// --- Kinds -----------------------------------------------------------------------------------------------

/// Makes the shown default the text that `text` returns now, and whenever it is captured again.
template <class Text>
CLI::Option* show_default(CLI::Option* option, const Text& text) {
  return option->default_function(text)->capture_default_str();
}

/// A number or a string. fmt writes numbers with all their digits, so a run's file of settings loses none.
template <class T>
CLI::Option* add_value(CLI::App& parser, const std::string& name, T& value, const std::string& help) {
  return show_default(parser.add_option(name, value, help), [&value] { return fmt::format("{}", value); });
}

/// A number that may be left open; then the help text shows no default.
template <class T>
CLI::Option* add_optional(CLI::App& parser, const std::string& name, std::optional<T>& value,
                          const std::string& help) {
  const auto set = [&value](const T& given) { value = given; };
  return show_default(parser.add_option_function<T>(name, set, help),
                      [&value] { return value ? fmt::format("{}", *value) : ""; });
}

/// A flag, which `--name=false` turns off.
CLI::Option* add_switch(CLI::App& parser, const std::string& name, bool& value, const std::string& help);

/// The values of an enum and their names in options.
template <class E>
using Names = std::vector<std::pair<std::string, E>>;

/// A value of an enum, by name. The help text lists the names.
template <class E>
CLI::Option* add_choice(CLI::App& parser, const std::string& name, E& value, const Names<E>& names,
                        const std::string& help) {
  std::vector<std::string> texts;
  for (const auto& [text, meaning] : names) texts.push_back(text);
  const std::string list = fmt::format("{}", fmt::join(texts, ", "));
  const auto check = [texts, list](const std::string& text) -> std::string {
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return "";
    return fmt::format("there is no \"{}\"; there is: {}", text, list);
  };
  const auto set = [&value, names](const std::string& chosen) {
    for (const auto& [text, meaning] : names) {
      if (text == chosen) value = meaning;
    }
  };
  const auto shown = [&value, names]() -> std::string {
    for (const auto& [text, meaning] : names) {
      if (meaning == value) return text;
    }
    return "";
  };
  return show_default(parser.add_option_function<std::string>(name, set, fmt::format("{}: {}", help, list))
                          ->check(CLI::Validator(check, ""))
                          ->type_name("NAME"),
                      shown);
}

/// The option --threads, which several commands have.
CLI::Option* add_threads(CLI::App& parser, int& threads);

}  // namespace fovea::cli
