#include "train/io/json.h"

#include <algorithm>
#include <utility>

#include "autograd/base/fail.h"

namespace fovea::detail {
namespace {

using nlohmann::json;

// The depth is looked at before the parser is, because what walks through a parsed value calls itself.
void check_depth(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      if (c == '\\') ++at;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_json)
        fail<ValueError>("it has more than {} lists and objects within one another", deepest_json);
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    }
  }
}

// Keeps the way to the present place.
class ValueReader : public nlohmann::json_sax<json> {
 public:
  using Take = std::function<void(const JsonPath& path, const json& value)>;

  ValueReader(std::string_view text, const Take& take) : text_(text), take_(take) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool truth) override { return value(truth); }
  bool number_integer(number_integer_t number) override { return value(number); }
  bool number_unsigned(number_unsigned_t number) override { return value(number); }
  bool number_float(number_float_t number, const std::string&) override { return value(number); }
  bool string(std::string& text) override { return value(std::move(text)); }
  bool binary(binary_t&) override { return false; }  // JSON in text has none
  bool start_object(std::size_t) override { return enter(); }
  bool key(std::string& name) override {
    path_.back() = std::move(name);
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, position);
    fail<ValueError>("it is not valid JSON at its byte {}, in line {}", position,
                     std::ranges::count(before, '\n') + 1);
  }

 private:
  bool value(const json& value) {
    take_(path_, value);
    return true;
  }
  bool enter() {
    path_.emplace_back();
    return true;
  }
  bool leave() {
    path_.pop_back();
    return true;
  }

  std::string_view text_;
  const Take& take_;
  JsonPath path_;
};

}  // namespace

void read_json(std::string_view text, nlohmann::json_sax<json>& reader) {
  // The parser would take a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail<ValueError>("it has a zero byte at its byte {}", zero + 1);
  check_depth(text);
  json::sax_parse(text.begin(), text.end(), &reader);
}

void read_json_values(std::string_view text, const ValueReader::Take& take) {
  ValueReader reader(text, take);
  read_json(text, reader);
}

json parse_json(std::string_view text) {
  if (text.size() > longest_parsed_json)
    fail<ValueError>("it has {} bytes, and at most {} are read", text.size(), longest_parsed_json);
  read_json_values(text, [](const JsonPath&, const json&) {});  // throws where the text is not JSON
  return json::parse(text);
}

}  // namespace fovea::detail
