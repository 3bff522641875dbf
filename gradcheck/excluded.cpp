#include "gradcheck/excluded.h"

#include <algorithm>
#include <charconv>

#include "autograd/base/fail.h"

namespace fovea::detail {

Excluded::Excluded(const std::vector<std::string>& names, const std::vector<NamedTensor>& tensors) {
  for (const std::string& name : names) {
    Entry entry;
    const std::size_t bracket = name.find('[');
    entry.tensor = name.substr(0, bracket);
    const auto found = std::ranges::find(tensors, entry.tensor, &NamedTensor::name);
    bool good = found != tensors.end() && (bracket == std::string::npos || name.back() == ']');
    const char *at = name.data() + std::min(bracket, name.size()), *end = name.data() + name.size();
    while (good && at != end && *at != ']') {
      std::int64_t index = -1;
      do ++at;
      while (at != end && *at == ' ');
      const auto [next, error] = std::from_chars(at, end, index);
      const Shape& shape = found->tensor.shape();
      const std::size_t axis = entry.leading.size();
      good = error == std::errc() && axis < shape.size() && index >= 0 && index < shape[axis];
      entry.leading.push_back(index);
      at = next;
    }
    if (!good) {
      fail<ValueError>(
          "[gradcheck] exclude names '{}', which is no element: give a tensor's name and leading indices "
          "within its shape, such as 'table[0]'",
          name);
    }
    entries_.push_back(std::move(entry));
  }
}

bool Excluded::operator()(const std::string& tensor, const Shape& index) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.tensor == tensor && std::equal(entry.leading.begin(), entry.leading.end(), index.begin());
  });
}

}  // namespace fovea::detail
