#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"

namespace fovea {

/// The longest text of an error, in bytes: longer than any path.
inline constexpr std::size_t longest_error = 5000;

/// Throws E with a formatted text: fail<ShapeError>("[op] what was found: {}", ...). The text becomes one
/// printable line, whatever the names, paths and texts in it are.
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw E(detail::printable(fmt::format(text, std::forward<Args>(args)...), longest_error));
}

}  // namespace fovea
