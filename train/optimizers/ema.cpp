#include "fovea/train/optimizers/ema.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "train/optimizers/update_loop.h"

namespace fovea {

Ema::Ema(std::vector<NamedTensor> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  if (parameters_.empty())
    fail<ValueError>("[Ema] the list of parameters is empty: does the layer's `visit` name any?");
  if (!(decay >= 0 && decay < 1)) fail<ValueError>("[Ema] decay is {}: it must be in [0, 1)", decay);
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : parameters_) {
    if (!names.insert(name).second) {
      fail<ValueError>(
          "[Ema] two parameters are named '{}', under which their averages are saved: give each its own name",
          name);
    }
    if (!tensor.is_contiguous()) fail<ValueError>("[Ema] '{}' is not in row-major order", name);
    averages_.push_back({name + ".average", clone(tensor.detach())});
  }
}

void Ema::check_not_swapped(const char* function) const {
  if (swapped_) {
    fail<ValueError>("[{}] weights and averages are swapped: call swap() again first", function);
  }
}

void Ema::update() {
  check_not_swapped("Ema::update");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& average = averages_[i].tensor;
    dispatch(average.dtype(), [&]<class T>() {
      const T rest = static_cast<T>(1 - decay_);
      T* a = average.mutable_data<T>();
      const T* p = parameters_[i].tensor.data<T>();
      detail::for_each_element(average.numel(), [=](std::int64_t j) { a[j] += rest * (p[j] - a[j]); });
    });
  }
}

void Ema::swap() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& average = averages_[i].tensor;
    dispatch(average.dtype(), [&]<class T>() {
      T* a = average.mutable_data<T>();
      std::swap_ranges(a, a + average.numel(), parameters_[i].tensor.mutable_data<T>());
    });
  }
  swapped_ = !swapped_;
}

void Ema::copy_to(const std::vector<NamedTensor>& parameters) const {
  check_not_swapped("Ema::copy_to");
  if (parameters.size() != parameters_.size()) {
    fail<ValueError>(
        "[Ema::copy_to] there are {} averages but {} parameters: pass those of a model of the same kind",
        parameters_.size(), parameters.size());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, to] = parameters[i];
    const auto& [own_name, own] = parameters_[i];
    if (name != own_name || to.shape() != own.shape()) {
      fail<ValueError>("[Ema::copy_to] parameter {} is '{}' {}, but the average is of '{}' {}", i, name,
                       to_string(to.shape()), own_name, to_string(own.shape()));
    }
    if (!to.is_contiguous()) fail<ValueError>("[Ema::copy_to] '{}' is not in row-major order", name);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor to_fill = parameters[i].tensor;
    dispatch(to_fill.dtype(), [&]<class T>() {
      const Tensor average = to(averages_[i].tensor, to_fill.dtype());
      std::copy_n(average.data<T>(), average.numel(), to_fill.mutable_data<T>());
    });
  }
}

void Ema::visit(const Ema& self, Visitor& v) {
  self.check_not_swapped("state of Ema");
  for (const auto& [name, tensor] : self.averages_) v.buffer(name, tensor);
}

}  // namespace fovea
