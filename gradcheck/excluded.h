#pragma once

#include <string>
#include <vector>

#include "fovea/autograd/base/shape.h"
#include "fovea/autograd/tensor/named_tensor.h"

namespace fovea::detail {

/// The elements that the option `exclude` names, such as "table[0, 2]".
class Excluded {
 public:
  /// Throws: ValueError for a text that is not a tensor's name with indices, or that names no element.
  Excluded(const std::vector<std::string>& names, const std::vector<NamedTensor>& tensors);
  /// Whether the element of that tensor is excluded.
  bool operator()(const std::string& tensor, const Shape& index) const;

 private:
  // The elements of a tensor whose index begins with `leading`.
  struct Entry {
    std::string tensor;
    Shape leading;
  };
  std::vector<Entry> entries_;
};

}  // namespace fovea::detail
