#include "cli/options.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "autograd/base/text.h"

namespace fovea::cli {
namespace {

using detail::in_quotes;
using detail::whole_number;
using detail::with_commas;

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = error == std::errc() && end == text.data() + text.size();
  return whole_text && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<bool> truth_in(std::string_view text) {
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

CLI::Validator accepting(std::function<bool(const std::string&)> is_good, std::string wanted) {
  return CLI::Validator(
      [is_good = std::move(is_good), wanted = std::move(wanted)](const std::string& text) {
        return is_good(text) ? "" : fmt::format("{} is not {}", in_quotes(text), wanted);
      },
      "");
}

CLI::Validator number(std::function<bool(double)> is_good, std::string wanted) {
  return accepting(
      [is_good = std::move(is_good)](const std::string& text) {
        const std::optional<double> value = number_in(text);
        return value && is_good(*value);
      },
      std::move(wanted));
}

// The options check a text before they read it, so a failure here is an option without a check.
template <class T>
T checked(const std::optional<T>& value, const std::string& text) {
  if (!value) throw CLI::ValidationError(fmt::format("{} is not a value of this option", in_quotes(text)));
  return *value;
}

}  // namespace

CLI::Validator count(std::int64_t low, std::int64_t high) {
  const std::string wanted = high == std::numeric_limits<std::int64_t>::max()
                                 ? fmt::format("a whole number of at least {}", low)
                                 : fmt::format("a whole number from {} to {}", low, with_commas(high));
  return accepting(
      [low, high](const std::string& text) {
        const std::optional<std::int64_t> value = whole_number(text);
        return value && low <= *value && *value <= high;
      },
      wanted);
}

CLI::Validator seed() { return count(0, std::numeric_limits<std::int64_t>::max()); }

CLI::Validator within(double low, double high) {
  return number([low, high](double value) { return low <= value && value <= high; },
                fmt::format("a number from {} to {}", low, high));
}

CLI::Validator at_least(double low) {
  return number([low](double value) { return low <= value; }, fmt::format("a number of at least {}", low));
}

CLI::Validator positive() {
  return number([](double value) { return value > 0; }, "a positive number");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) -> std::string { return text.empty() ? "the value is empty" : ""; }, "");
}

CLI::Validator one_of(std::vector<std::string> names) {
  return CLI::Validator(
      [names = std::move(names)](const std::string& text) -> std::string {
        if (std::ranges::find(names, text) != names.end()) return "";
        return fmt::format("there is no \"{}\"; there is: {}", detail::printable(text, 80),
                           fmt::join(names, ", "));
      },
      "");
}

ValueKind kind_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return ValueKind::boolean;
  const std::string type = option.get_type_name();
  if (type == type_name<std::int64_t>()) return ValueKind::whole_number;
  return type == type_name<double>() ? ValueKind::number : ValueKind::text;
}

std::string fault_of(CLI::Option& option, const std::string& text) {
  try {
    return (*option.get_validator(0))(text);
  } catch (const CLI::OptionNotFound&) {  // an option without a check takes any text
    return "";
  }
}

template <>
std::int64_t value_in(const std::string& text) {
  return checked(whole_number(text), text);
}

template <>
std::uint64_t value_in(const std::string& text) {
  return static_cast<std::uint64_t>(value_in<std::int64_t>(text));
}

template <>
int value_in(const std::string& text) {
  return static_cast<int>(value_in<std::int64_t>(text));
}

template <>
double value_in(const std::string& text) {
  return checked(number_in(text), text);
}

template <>
bool value_in(const std::string& text) {
  return checked(truth_in(text), text);
}

template <>
std::string value_in(const std::string& text) {
  return text;
}

CLI::Option* add_switch(CLI::App& parser, const std::string& name, bool& value, const std::string& help,
                        const std::function<void()>& changed) {
  const auto set = [&value, changed](const std::string& text) {
    value = value_in<bool>(text);
    if (changed) changed();
  };
  const auto is_truth = [](const std::string& text) { return truth_in(text).has_value(); };
  return show_default(parser.add_option_function<std::string>(name, set, help)
                          ->expected(0)
                          ->check(accepting(is_truth, "true or false"))
                          ->type_name(""),
                      [&value] { return value ? "true" : "false"; });
}

CLI::Option* add_run(CLI::App& parser, std::string& folder) {
  return add_value(parser, "run", folder, "Folder of the run")
      ->required()
      ->check(not_empty())
      ->type_name("RUN");
}

CLI::Option* add_threads(CLI::App& parser, int& threads) {
  return add_value(parser, "--threads", threads, "Number of threads; the results do not depend on it")
      ->check(count(1, 4096));
}

}  // namespace fovea::cli
