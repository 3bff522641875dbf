#include "cli/options.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace fovea::cli {
namespace {

CLI::Validator number(std::function<bool(double)> good, std::string wanted) {
  return CLI::Validator(
      [good = std::move(good), wanted = std::move(wanted)](const std::string& text) -> std::string {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && good(value);
        return fits ? "" : fmt::format("{} is not {}", text, wanted);
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
  return number([low](double value) { return low <= value; }, fmt::format("a number from {} on", low));
}

CLI::Validator positive() {
  return number([](double value) { return value > 0; }, "a positive number");
}

}  // namespace fovea::cli
