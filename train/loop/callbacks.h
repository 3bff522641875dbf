#pragma once

#include <exception>
#include <functional>
#include <type_traits>
#include <vector>

namespace fovea::detail {

/// Calls each callback, even after one has thrown, and then throws the first exception.
template <class... Arguments>
void call_all(const std::vector<std::function<void(Arguments...)>>& callbacks,
              const std::type_identity_t<Arguments>&... arguments) {
  std::exception_ptr first;
  for (const auto& callback : callbacks) {
    try {
      callback(arguments...);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace fovea::detail
