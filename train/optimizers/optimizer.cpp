#include "fovea/train/optimizers/optimizer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "autograd/base/columns.h"
#include "autograd/base/fail.h"
#include "autograd/base/non_finite.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/ops.h"

namespace fovea {

bool decays_by_default(const NamedTensor& parameter) { return parameter.tensor.rank() >= 2; }

Optimizer::Optimizer(const char* name, std::vector<NamedTensor> parameters, double learning_rate,
                     const std::vector<ParameterGroup>& groups, const std::optional<WeightDecay>& decay)
    : name_(name), parameters_(std::move(parameters)), settings_(parameters_.size()) {
  check_parameters();
  set_learning_rate(learning_rate);
  if (decay) {
    check_option("weight_decay", decay->amount, 0, infinity);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (decay->decays(parameters_[i])) settings_[i].weight_decay = decay->amount;
    }
  }
  join_groups(groups, decay.has_value());
}

void Optimizer::check_parameters() const {
  if (parameters_.empty()) {
    fail<ValueError>("[{}] the list of parameters is empty: does the layer's `visit` name any?", name_);
  }
  std::set<const detail::TensorImpl*> seen;
  std::set<std::string_view> names;
  for (const auto& [parameter, tensor] : parameters_) {
    if (!tensor.requires_grad()) {
      fail<ValueError>(
          "[{}] '{}', shape {}, does not require a gradient: if it is to be trained, make it with "
          "parameter(...); if it is frozen, make the optimizer from trainable_parameters(model)",
          name_, parameter, to_string(tensor.shape()));
    }
    if (!tensor.is_contiguous()) {
      fail<ValueError>("[{}] '{}', shape {}, is not in row-major order: make it with parameter(...)", name_,
                       parameter, to_string(tensor.shape()));
    }
    if (!seen.insert(&detail::impl_of(tensor)).second) {
      fail<ValueError>("[{}] '{}' is in the list of parameters twice, so it would be updated twice", name_,
                       parameter);
    }
    if (!names.insert(parameter).second) {
      fail<ValueError>(
          "[{}] two parameters are named '{}', under which their state is saved: give each its own name",
          name_, parameter);
    }
  }
}

void Optimizer::join_groups(const std::vector<ParameterGroup>& groups, bool may_decay) {
  std::vector<bool> taken(parameters_.size());
  for (const auto& [pattern, lr_scale, weight_decay] : groups) {
    check_option("a group's lr_scale", lr_scale, 0, infinity);
    if (weight_decay) check_option("a group's weight_decay", *weight_decay, 0, infinity);
    if (weight_decay && !may_decay) {
      fail<ValueError>(
          "[{}] group '{}' has a weight decay, but this optimizer does not support one: use AdamW", name_,
          pattern);
    }
    bool matches_any = false, has_any = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!name_matches(pattern, parameters_[i].name)) continue;
      matches_any = true;
      if (taken[i]) continue;
      has_any = taken[i] = true;
      settings_[i] = {pattern, lr_scale, weight_decay.value_or(settings_[i].weight_decay)};
    }
    if (!has_any) {
      fail<ValueError>(
          "[{}] group '{}' {}", name_, pattern,
          matches_any
              ? "matches only parameters that an earlier group has: put narrow patterns first"
              : fmt::format("matches no parameter: their names are like '{}'", parameters_.front().name));
    }
  }
}

void Optimizer::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = parameters_[i].tensor.grad();
    if (gradient.defined()) update(i, contiguous(gradient.detach()));
  }
}

void Optimizer::zero_grad() {
  for (const NamedTensor& parameter : parameters_) parameter.tensor.set_grad({});
}

void Optimizer::set_learning_rate(double rate) {
  check_option("learning_rate", rate, 0, infinity);
  learning_rate_ = rate;
}

void Optimizer::visit(const Optimizer& self, Visitor& v) {
  for (const auto& [name, tensor] : self.state_) v.buffer(name, tensor);
}

std::vector<Tensor> Optimizer::add_state(const std::string& name, bool scalar,
                                         const std::function<bool(const NamedTensor&)>& has) {
  std::vector<Tensor> added;
  for (const NamedTensor& parameter : parameters_) {
    const Tensor& tensor = parameter.tensor;
    added.emplace_back();
    if (has && !has(parameter)) continue;
    added.back() = scalar ? zeros({}, f64) : zeros(tensor.shape(), tensor.dtype());
    state_.push_back({fmt::format("{}.{}", parameter.name, name), added.back()});
  }
  return added;
}

void Optimizer::check_option(const char* option, double value, double low, double high) const {
  if (value >= low && value < high) return;
  fail<ValueError>("[{}] {} is {}: it must be at least {} and below {}", name_, option, value, low, high);
}

std::vector<std::string> Optimizer::names_where(bool decays) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if ((settings_[i].weight_decay > 0) == decays) names.push_back(parameters_[i].name);
  }
  return names;
}

std::string parameter_table(const Optimizer& optimizer) {
  using detail::column_count, detail::padded;
  const std::vector<NamedTensor>& parameters = optimizer.parameters();
  std::size_t name_width = std::string_view("parameter").size(),
              group_width = std::string_view("group").size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    name_width = std::max(name_width, column_count(parameters[i].name));
    group_width = std::max(group_width, column_count(optimizer.settings()[i].group));
  }
  std::string text = fmt::format("{:<{}}  {:<14}  {:>10}  {:<{}}  {:>9}  {:>9}\n", "parameter", name_width,
                                 "shape", "elements", "group", group_width, "rate", "decay");
  std::int64_t counts[2] = {}, elements[2] = {};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& tensor = parameters[i].tensor;
    const auto& [group, lr_scale, weight_decay] = optimizer.settings()[i];
    text += fmt::format("{}  {:<14}  {:>10}  {}  {:>9.4g}  {:>9.4g}\n",
                        padded(parameters[i].name, name_width), to_string(tensor.shape()), tensor.numel(),
                        padded(group.empty() ? "-" : group, group_width),
                        optimizer.learning_rate() * lr_scale, weight_decay);
    ++counts[weight_decay > 0];
    elements[weight_decay > 0] += tensor.numel();
  }
  return text + fmt::format("decayed: {} with {} elements; not decayed: {} with {} elements", counts[1],
                            elements[1], counts[0], elements[0]);
}

}  // namespace fovea
