#include "fovea/autograd/tensor/nested_list.h"

#include "autograd/base/fail.h"

namespace fovea {

template <class T>
Shape NestedList<T>::shape(const char* op) const {
  if (!is_list_) return {};
  Shape shape{static_cast<std::int64_t>(items_.size())};
  if (items_.empty()) return shape;
  const Shape first = items_.front().shape(op);
  for (const NestedList& item : items_) {
    const Shape other = item.shape(op);
    if (other == first) continue;
    if (first.size() == 1 && other.size() == 1) {
      fail<ShapeError>("[{}] rows of {} and {} elements: all must have the same", op, first[0], other[0]);
    }
    fail<ShapeError>("[{}] parts of shape {} and {} side by side: all must have the same", op,
                     to_string(first), to_string(other));
  }
  for (const std::int64_t size : first) shape.push_back(size);
  return shape;
}

template class NestedList<double>;
template class NestedList<std::int64_t>;
template class NestedList<bool>;

}  // namespace fovea
