#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/shape.h"

namespace fovea {

namespace detail {
/// A number that may be written for an element of type T, because it keeps its value: a whole number for a
/// double, but no double for a whole number, and only true and false for a bool.
template <class Number, class T>
concept WrittenAs = (std::same_as<T, bool> && std::same_as<Number, bool>) ||
                    (std::floating_point<T> && (std::floating_point<Number> || WholeNumber<Number>)) ||
                    (WholeNumber<T> && WholeNumber<Number> &&
                     (std::is_enum_v<Number> || std::signed_integral<Number> || sizeof(Number) < sizeof(T)));
}  // namespace detail

/// Elements in braces, as the arguments of `tensor`, Indices and Bool. The depth of the braces is the number
/// of axes: 3 is a scalar, {3} a vector of one element, {{3}} a matrix.
template <class T>
class NestedList {
 public:
  template <detail::WrittenAs<T> Number>
  NestedList(Number element) : element_(static_cast<T>(element)) {}
  NestedList(std::initializer_list<NestedList> items) : is_list_(true), items_(items) {}

  /// Throws: ShapeError, naming `op`, if items side by side differ in shape.
  Shape shape(const char* op) const;

  /// Appends all elements in row-major order.
  template <class Element>
  void append_to(std::vector<Element>& elements) const {
    if (!is_list_) elements.push_back(static_cast<Element>(element_));
    for (const NestedList& item : items_) item.append_to(elements);
  }

 private:
  bool is_list_ = false;
  T element_{};
  std::vector<NestedList> items_;
};

extern template class FOVEA_API NestedList<double>;
extern template class FOVEA_API NestedList<std::int64_t>;
extern template class FOVEA_API NestedList<bool>;

}  // namespace fovea
