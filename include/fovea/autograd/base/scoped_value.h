#pragma once

#include <utility>

namespace fovea::detail {

/// Sets a variable, most often one of the thread, for as long as the scope lives, and then restores it.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(before_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  /// What the variable held before, and will hold again.
  const T& before() const { return before_; }

 private:
  T& variable_;
  T before_;
};

}  // namespace fovea::detail
