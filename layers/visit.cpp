#include "fovea/layers/visit.h"

#include <algorithm>
#include <map>

#include "autograd/base/columns.h"
#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "autograd/graph/node.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

using IndexByName = std::map<std::string_view, std::size_t>;

IndexByName index_by_name(const std::vector<Member>& members) {
  IndexByName indices;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!indices.emplace(members[i].name, i).second) {
      fail<ValueError>("[visit] two members are named '{}': give each its own name", members[i].name);
    }
  }
  return indices;
}

// Optimizers and `load` write to a member's tensor in place, so it must be a contiguous leaf, and whether it
// requires a gradient must fit its role.
void check_tensor(const Member& member) {
  const Tensor& x = *member.tensor;
  const std::string shape = to_string(x.shape());
  if (!x.is_leaf()) {
    fail<GraphError>("[visit] '{}', shape {}, was computed by '{}' and recorded: make it with parameter(...)",
                     member.name, shape, detail::op_name(*detail::impl_of(x).node));
  }
  if (!x.is_contiguous()) {
    fail<ValueError>(
        "[visit] '{}', shape {}, is not in row-major order: make it with parameter(...), or clone it",
        member.name, shape);
  }
  if (member.role != Role::parameter && x.requires_grad()) {
    fail<GraphError>(
        "[visit] '{}', shape {}, is declared {} but requires a gradient: make it without "
        "parameter(...), or freeze(...) its layer",
        member.name, shape, member.role == Role::frozen ? "frozen" : "a buffer");
  }
}

std::size_t index_of(const std::string& name, const IndexByName& indices) {
  const auto found = indices.find(name);
  if (found == indices.end())
    fail<ValueError>("[visit] a tie names '{}', but there is no member of that name", name);
  return found->second;
}

// Follows a chain of ties from member i to the original.
std::size_t original_of(std::size_t i, const std::vector<Member>& members) {
  std::size_t original = i;
  for (std::size_t steps = 0; members[original].tied_to; ++steps) {
    if (steps == members.size()) {
      fail<ValueError>("[visit] the ties of '{}' form a circle: one of its names must be the original",
                       members[i].name);
    }
    original = *members[original].tied_to;
  }
  return original;
}

void check_ties(std::vector<Member>& members) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].tied_to) continue;
    members[i].tied_to = original_of(i, members);
    const Member& original = members[*members[i].tied_to];
    if (!members[i].tensor->is_same(*original.tensor)) {
      fail<ValueError>(
          "[visit] '{}' is declared tied to '{}', but they hold different tensors, of shapes {} and {}: "
          "assign one to the other in the constructor",
          members[i].name, original.name, to_string(members[i].tensor->shape()),
          to_string(original.tensor->shape()));
    }
  }
}

void check_sharing(const std::vector<Member>& members) {
  std::map<const detail::Buffer*, const Member*> owners;
  for (const Member& member : members) {
    if (member.tied_to) continue;
    const auto [owner, is_new] = owners.emplace(detail::impl_of(*member.tensor).buffer.get(), &member);
    if (is_new) continue;
    fail<ValueError>(
        "[visit] '{}' and '{}' share one tensor of shape {}: make each its own (copies of a layer share: "
        "use clone), or declare v.tie(\"{}\", \"{}\")",
        owner->second->name, member.name, to_string(member.tensor->shape()), member.name,
        owner->second->name);
  }
}

}  // namespace

void Visitor::add(std::string_view name, const Tensor& tensor) {
  if (tensor.defined()) members_.push_back({full(name), &tensor, role_});
}

void Visitor::tie(std::string_view name, std::string_view original) {
  ties_.emplace_back(full(name), full(original));
}

std::vector<Member> Visitor::members() && {
  const IndexByName indices = index_by_name(members_);
  for (const Member& member : members_) check_tensor(member);
  for (const auto& [name, original] : ties_) {
    members_[index_of(name, indices)].tied_to = index_of(original, indices);
  }
  check_ties(members_);
  check_sharing(members_);
  return std::move(members_);
}

Tensor parameter(const Tensor& initial) { return contiguous(initial.detach()).set_requires_grad(); }

namespace detail {

std::vector<NamedTensor> named_parameters(const std::vector<Member>& members) {
  std::vector<NamedTensor> parameters;
  for (const Member& member : members) {
    if (member.role != Role::parameter || member.tied_to) continue;
    parameters.push_back({member.name, *member.tensor});
  }
  return parameters;
}

std::vector<NamedTensor> trainable_parameters(const std::vector<Member>& members) {
  std::vector<NamedTensor> parameters = named_parameters(members);
  std::erase_if(parameters, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
  return parameters;
}

std::int64_t parameter_count(const std::vector<Member>& members) {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : named_parameters(members)) count += parameter.tensor.numel();
  return count;
}

void freeze(const std::vector<Member>& members) {
  for (const Member& member : members) Tensor(*member.tensor).set_requires_grad(false);
}

void change_tensors(const std::vector<Member>& members, const std::function<void(Tensor&)>& change) {
  const auto writable = [](const Member& member) -> Tensor& { return *const_cast<Tensor*>(member.tensor); };
  for (const Member& member : members) {
    if (!member.tied_to) change(writable(member));
  }
  for (const Member& member : members) {
    if (member.tied_to) writable(member) = *members[*member.tied_to].tensor;
  }
}

void replace_tensors(const std::vector<Member>& members, std::optional<Dtype> dtype) {
  change_tensors(members, [&](Tensor& x) {
    const Tensor old = x.detach();
    Tensor copy = old.dtype() == dtype.value_or(old.dtype()) ? fovea::clone(old) : fovea::to(old, *dtype);
    x = copy.set_requires_grad(x.requires_grad());
  });
}

std::string to_string(const std::vector<Member>& members) {
  std::size_t width = 0;
  for (const Member& member : members) width = std::max(width, detail::column_count(member.name));
  std::string text;
  std::int64_t frozen = 0;
  std::int64_t buffers = 0;
  for (const Member& member : members) {
    text += detail::padded(member.name, width) + "  ";
    if (member.tied_to) {
      text += fmt::format("= {}\n", members[*member.tied_to].name);
      continue;
    }
    const Tensor& x = *member.tensor;
    const char* role = member.role == Role::frozen   ? "  frozen"
                       : member.role == Role::buffer ? "  buffer"
                                                     : "";
    text += fmt::format("{} {}{}\n", name_of(x.dtype()), fovea::to_string(x.shape()), role);
    if (member.role == Role::frozen) frozen += x.numel();
    if (member.role == Role::buffer) buffers += x.numel();
  }
  text += detail::with_commas(parameter_count(members)) + " parameters";
  if (frozen) text += ", " + detail::with_commas(frozen) + " frozen";
  if (buffers) text += ", " + detail::with_commas(buffers) + " in buffers";
  return text;
}

}  // namespace detail
}  // namespace fovea
