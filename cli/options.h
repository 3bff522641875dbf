#pragma once

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Kinds of command-line options. Each writes one variable, and its default in the help text is the value
/// that the variable has when CLI11 captures it. CLI11 only splits the command line: texts become values
/// here, so that a value means the same on the command line and in a file of settings.
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
/// Accepts any text but the empty one.
CLI::Validator not_empty();

// --- Kinds -----------------------------------------------------------------------------------------------

/// What an option's value is. A file of settings writes each kind in its own way: true, 12, 0.5 or "text".
enum class ValueKind : std::uint8_t { boolean, whole_number, number, text };

/// The kind of an option that a function below has added.
ValueKind kind_of(const CLI::Option& option);

/// What is wrong with a text as the value of an option; nothing if it is right.
std::string fault_of(CLI::Option& option, const std::string& text);

/// The value that a text stands for. Numbers are decimal. Throws: CLI::ValidationError if there is none.
template <class T>
T value_in(const std::string& text) = delete;
template <>
std::int64_t value_in(const std::string& text);
template <>
std::uint64_t value_in(const std::string& text);
template <>
int value_in(const std::string& text);
template <>
double value_in(const std::string& text);
template <>
bool value_in(const std::string& text);
template <>
std::string value_in(const std::string& text);

/// The name that the help text has for values of a type; `kind_of` knows a kind by it.
template <class T>
constexpr const char* type_name() {
  return std::is_same_v<T, std::string> ? "TEXT" : std::is_floating_point_v<T> ? "NUMBER" : "INT";
}

/// Makes the shown default the text that `text` returns now, and whenever it is captured again.
template <class Text>
CLI::Option* show_default(CLI::Option* option, const Text& text) {
  return option->default_function(text)->capture_default_str();
}

/// A number or a string. fmt writes numbers with all their digits, so a run's file of settings loses none.
template <class T>
CLI::Option* add_value(CLI::App& parser, const std::string& name, T& value, const std::string& help) {
  const auto set = [&value](const std::string& text) { value = value_in<T>(text); };
  return show_default(parser.add_option_function<std::string>(name, set, help)->type_name(type_name<T>()),
                      [&value] { return fmt::format("{}", value); });
}

/// A number that may be left open; then the help text shows no default.
template <class T>
CLI::Option* add_optional(CLI::App& parser, const std::string& name, std::optional<T>& value,
                          const std::string& help) {
  const auto set = [&value](const std::string& text) { value = value_in<T>(text); };
  return show_default(parser.add_option_function<std::string>(name, set, help)->type_name(type_name<T>()),
                      [&value] { return value ? fmt::format("{}", *value) : ""; });
}

/// A flag, which `--name=false` turns off. `changed` is called after the variable has its value.
CLI::Option* add_switch(CLI::App& parser, const std::string& name, bool& value, const std::string& help,
                        const std::function<void()>& changed = {});

/// The values of an enum and their names in options.
template <class E>
using Names = std::vector<std::pair<std::string, E>>;

/// Accepts one of these names.
CLI::Validator one_of(std::vector<std::string> names);

/// A value of an enum, by name. The help text lists the names.
template <class E>
CLI::Option* add_choice(CLI::App& parser, const std::string& name, E& value, const Names<E>& names,
                        const std::string& help) {
  std::vector<std::string> texts;
  for (const auto& [text, meaning] : names) texts.push_back(text);
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
  const std::string full_help = fmt::format("{}: {}", help, fmt::join(texts, ", "));
  return show_default(parser.add_option_function<std::string>(name, set, full_help)
                          ->check(one_of(std::move(texts)))
                          ->type_name("NAME"),
                      shown);
}

/// The folder of a run, which several commands take.
CLI::Option* add_run(CLI::App& parser, std::string& folder);

/// The option --threads, which several commands have.
CLI::Option* add_threads(CLI::App& parser, int& threads);

}  // namespace fovea::cli
