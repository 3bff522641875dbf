#include "cli/settings_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "autograd/base/text.h"
#include "autograd/base/utf8.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/tokenizers/clean_text.h"
#include "train/io/file.h"

namespace fovea::cli {
namespace {

// An empty file is one without settings, so `read_text`, which refuses it, does not do here.
toml::table parse(const std::filesystem::path& file) {
  const std::string bytes = detail::read_file("read_settings_file", file);
  try {
    return toml::parse(clean_text(bytes));
  } catch (const toml::parse_error& error) {
    refuse_setting(file, error.source().begin.line,
                   fmt::format("this is not TOML, in which each name stands once, numbers are decimal and "
                               "texts stand in quotes: {}",
                               error.description()));
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

SettingsEntry entry_of(const std::filesystem::path& file, const std::string& name, const toml::node& node) {
  const std::int64_t line = node.source().begin.line;
  const auto refuse = [&](const std::string& what) { refuse_setting(file, line, what); };
  if (const auto* text = node.as_string()) return {name, ValueKind::text, text->get(), line};
  if (const auto* truth = node.as_boolean())
    return {name, ValueKind::boolean, truth->get() ? "true" : "false", line};
  if (const auto* number = node.as_floating_point())
    return {name, ValueKind::number, fmt::format("{}", number->get()), line};
  if (const auto* number = node.as_integer()) {
    if (number->flags() != toml::value_flags::none)
      refuse(fmt::format("{} has a number that is not decimal: write {}", name, number->get()));
    return {name, ValueKind::whole_number, fmt::format("{}", number->get()), line};
  }
  if (node.is_table()) refuse(fmt::format("a file of settings has no sections, such as [{}]", name));
  refuse(fmt::format("{} has {}, and needs one value", name, node.is_array() ? "a list" : "a date or time"));
  return {};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = detail::first_character(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void refuse_setting(const std::filesystem::path& file, std::int64_t line, const std::string& what) {
  throw ValueError(fmt::format("{}: {} (line {})", file.string(), what, line));
}

std::vector<SettingsEntry> read_settings_file(const std::filesystem::path& file) {
  std::vector<SettingsEntry> entries;
  for (const auto& [key, node] : parse(file)) {
    entries.push_back(entry_of(file, detail::printable(key.str(), 80), node));
  }
  std::ranges::stable_sort(entries, {}, &SettingsEntry::line);
  return entries;
}

std::string settings_line(const std::string& name, ValueKind kind, const std::string& value) {
  if (kind != ValueKind::text) return fmt::format("{}={}\n", name, value);
  if (!is_utf8(value)) {
    throw ValueError(
        fmt::format("{} is {}, which is not UTF-8 and so can't stand in a file of settings: rename it", name,
                    detail::in_quotes(value)));
  }
  std::ostringstream text;
  text << toml::toml_formatter{toml::value<std::string>{value}, toml::format_flags::allow_unicode_strings};
  return fmt::format("{}={}\n", name, text.str());
}

}  // namespace fovea::cli
