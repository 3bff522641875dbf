#include "autograd/base/columns.h"

#include <algorithm>
#include <utf8proc.h>

#include "autograd/base/utf8.h"

namespace fovea::detail {
namespace {

// What a reader takes for one character: a code point and those that combine with it (a grapheme cluster of
// Unicode's UAX #29).
struct Cluster {
  std::size_t bytes = 0;
  std::size_t columns = 0;
};

// The character that a text begins with. A byte that is not UTF-8 counts as the replacement character.
Character first_or_replacement(std::string_view text) {
  const Character first = first_character(text);
  return first.length > 0 ? first : Character{0xFFFD, 1};
}

// The cluster that a text begins with. The parts of one picture, such as a family or a flag, share two
// columns.
Cluster first_cluster(std::string_view text) {
  constexpr std::size_t widest = 2;
  Cluster cluster;
  utf8proc_int32_t state = 0;
  for (utf8proc_int32_t last = 0; cluster.bytes < text.size();) {
    const Character next = first_or_replacement(text.substr(cluster.bytes));
    const auto code = static_cast<utf8proc_int32_t>(next.code);
    if (cluster.bytes > 0 && utf8proc_grapheme_break_stateful(last, code, &state)) break;
    cluster.bytes += next.length;
    cluster.columns += static_cast<std::size_t>(utf8proc_charwidth(code));
    last = code;
  }
  cluster.columns = std::min(cluster.columns, widest);
  return cluster;
}

// The number of bytes of the longest beginning that fits.
std::size_t bytes_that_fit(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Cluster next = first_cluster(text.substr(bytes));
    if (next.columns > columns) break;
    columns -= next.columns;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

std::size_t column_count(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Cluster next = first_cluster(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string padded(std::string_view text, std::size_t columns) {
  const std::size_t used = column_count(text);
  return std::string(text) + std::string(columns - std::min(used, columns), ' ');
}

std::string fitted(std::string_view text, std::size_t columns) {
  constexpr std::string_view rest = "...";
  if (bytes_that_fit(text, columns) == text.size()) return std::string(text);
  const std::size_t kept = bytes_that_fit(text, columns - std::min(rest.size(), columns));
  return std::string(text.substr(0, kept)).append(rest);
}

}  // namespace fovea::detail
