#include "cli/saved_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"

namespace fovea::cli {
namespace {

constexpr const char* settings_key = "settings";
constexpr const char* steps_name = "steps";
constexpr std::array decide_nothing{"text", "tokenizer", "checkpoint-every", "keep-checkpoints"};

// The values in a file of settings by name. Each is on a line of its own, as `settings_text` writes it.
std::map<std::string, std::string> values_by_name(const std::string& settings_text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(settings_text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find('=');
    if (end != std::string::npos) values[line.substr(0, end)] = line.substr(end + 1);
  }
  for (const char* name : decide_nothing) values.erase(name);
  return values;
}

std::map<std::string, std::string> values_in(const Metadata& checkpoint) {
  const auto saved = checkpoint.find(settings_key);
  return saved == checkpoint.end() ? std::map<std::string, std::string>{} : values_by_name(saved->second);
}

[[noreturn]] void refuse_change(const std::string& name, const std::string& before, const std::string& now,
                                const std::string& run) {
  throw ValueError(
      fmt::format("the checkpoint of the run was made with {0} = {1}, but its {2} has {0} = {3}: change it "
                  "back to continue the run, or "
                  "begin another with its weights by --from {4}",
                  name, detail::printable(before, 80), settings_file, detail::printable(now, 80),
                  detail::printable(run)));
}

}  // namespace

Metadata saved_settings(const std::string& settings_text) {
  std::string text;
  for (const auto& [name, value] : values_by_name(settings_text)) text += fmt::format("{}={}\n", name, value);
  return {{settings_key, text}};
}

void check_saved_settings(const Settings& settings, const std::string& settings_text,
                          const Metadata& checkpoint) {
  const std::map<std::string, std::string> before = values_in(checkpoint),
                                           now = values_by_name(settings_text);
  if (before.empty()) return;
  const auto value_in = [](const auto& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "(none)" : found->second;
  };
  // A setting that one of them lacks follows from another that both have, so that one is named first.
  for (const auto& [name, value] : before) {
    if (name != steps_name && now.contains(name) && now.at(name) != value)
      refuse_change(name, value, now.at(name), settings.resume);
  }
  for (const auto* values : {&before, &now}) {
    for (const auto& [name, value] : *values) {
      if (!before.contains(name) || !now.contains(name))
        refuse_change(name, value_in(before, name), value_in(now, name), settings.resume);
    }
  }
}

std::int64_t saved_steps(const Settings& settings, const Metadata& checkpoint) {
  const std::map<std::string, std::string> values = values_in(checkpoint);
  const auto found = values.find(steps_name);
  return (found == values.end() ? std::nullopt : detail::whole_number(found->second))
      .value_or(settings.recipe.steps);
}

}  // namespace fovea::cli
