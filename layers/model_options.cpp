#include "layers/model_options.h"

#include <fmt/format.h>

#include <charconv>
#include <concepts>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "layers/model.h"

namespace fovea::detail {
namespace {

constexpr const char *none = "none", *member = "config.";

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) {
  return fmt::format("{}", value);
}  // as many digits as tell it from others
template <class E>
requires std::is_enum_v<E> std::string text_of(E value) {
  for (const auto& [name, each] : names_of(E())) {
    if (each == value) return name;
  }
  fail<ValueError>("[visit] an option of a model has the value {}, which none of its names stands for",
                   static_cast<int>(value));
}
std::string text_of(const std::optional<std::int64_t>& value) { return value ? text_of(*value) : none; }

// Names each option as a setting of the model.
struct Writer {
  Visitor& visitor;

  template <class T>
  void operator()(const std::string& name, const T& value, Effect effect) const {
    visitor.setting(member + name, text_of(value), effect == Effect::on_values);
  }
  template <class Options, class List>
  void group(const std::string& name, const std::optional<Options>& options, const List& list) const {
    visitor.setting(member + name, options ? "given" : none);
    if (options) list(*options);
  }
};

// Gives each option the value that the settings have for it.
struct Reader {
  const Settings& settings;

  const std::string& text(const std::string& name) const {
    const auto found = settings.find(member + name);
    if (found == settings.end()) {
      fail<ValueError>("[load_gpt] the settings of the model lack '{}': it was saved by another version",
                       name);
    }
    return found->second;
  }
  [[noreturn]] static void refuse(const std::string& name, const std::string& text) {
    fail<ValueError>("[load_gpt] the setting '{}' of the model is {}, which is no value of it", name,
                     in_quotes(text));
  }

  template <class T>
  void operator()(const std::string& name, T& value, Effect) const {
    const std::string& found = text(name);
    if (!read(found, value)) refuse(name, found);
  }
  template <class Options, class List>
  void group(const std::string& name, std::optional<Options>& options, const List& list) const {
    if (text(name) == none) return;
    list(options.emplace());
  }

  static bool read(const std::string& text, bool& value) {
    value = text == "true";
    return value || text == "false";
  }
  static bool read(const std::string& text, std::int64_t& value) {
    const std::optional<std::int64_t> number = whole_number(text);
    if (number) value = *number;
    return number.has_value();
  }
  static bool read(const std::string& text, double& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end;
  }
  template <class E>
  requires std::is_enum_v<E>
  static bool read(const std::string& text, E& value) {
    for (const auto& [name, each] : names_of(E())) {
      if (name != text) continue;
      value = each;
      return true;
    }
    return false;
  }
  static bool read(const std::string& text, std::optional<std::int64_t>& value) {
    if (text == none) return true;
    return read(text, value.emplace());
  }
};

}  // namespace

void visit_options(const GptConfig& config, Visitor& v) {
  GptConfig whole = config;
  use_positions("Gpt", whole.positions, /*bidirectional=*/false, whole.block.attention);
  Writer write{v};
  for_each_gpt_option(std::as_const(whole), write);
}

void visit_options(const EncoderConfig& config, Visitor& v) {
  EncoderConfig whole = config;
  use_positions("Encoder", whole.positions, /*bidirectional=*/true, whole.block.attention);
  Writer write{v};
  for_each_encoder_option(std::as_const(whole), write);
}

GptConfig read_gpt_options(const Settings& settings) {
  GptConfig config;
  Reader read{settings};
  for_each_gpt_option(config, read);
  return config;
}

}  // namespace fovea::detail
