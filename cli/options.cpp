#include "cli/options.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <system_error>

namespace fovea::cli {
namespace {

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = error == std::errc() && end == text.data() + text.size();
  return whole_text ? std::optional(number) : std::nullopt;
}

CLI::Validator number(std::function<bool(double)> is_good, std::string wanted) {
  return CLI::Validator(
      [is_good = std::move(is_good), wanted = std::move(wanted)](const std::string& text) -> std::string {
        const std::optional<double> value = number_in(text);
        if (value && std::isfinite(*value) && is_good(*value)) return "";
        return fmt::format("{} is not {}", text, wanted);
      },
      "");
}

}  // namespace

CLI::Validator count(std::int64_t low, std::int64_t high) {
  return CLI::Validator(CLI::Range(low, high)).description("");
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

CLI::Option* add_switch(CLI::App& parser, const std::string& name, bool& value, const std::string& help) {
  return show_default(parser.add_flag(name, value, help), [&value] { return value ? "true" : "false"; });
}

CLI::Option* add_threads(CLI::App& parser, int& threads) {
  return add_value(parser, "--threads", threads, "Number of threads; the results do not depend on it")
      ->check(count(1, 4096));
}

}  // namespace fovea::cli
