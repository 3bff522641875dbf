#pragma once

#include <fmt/format.h>

#include <utility>

#include "fovea/autograd/base/error.h"

namespace fovea {

/// Throws E with a formatted text: fail<ShapeError>("[op] what was found: {}", ...).
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace fovea
