#include "fovea/layers/state.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

using Values = std::map<std::string, Tensor>;

Values values_by_name(const State& state) {
  Values values;
  const auto add = [&](const std::string& name, const Tensor& value) {
    if (!values.emplace(name, value).second)
      fail<ValueError>("[load] the state has the name '{}' twice", name);
  };
  for (const auto& [name, value] : state.tensors) add(name, value.detach());
  const Values originals = values;
  for (const auto& [name, original] : state.aliases) {
    const auto found = originals.find(original);
    if (found == originals.end()) {
      fail<ValueError>("[load] the state has '{}' as an alias of '{}', which it does not have", name,
                       original);
    }
    add(name, found->second);
  }
  return values;
}

using Names = std::vector<std::string>;

// For each member its name, and the names of all members tied to it.
std::vector<Names> names_of_member(const std::vector<Member>& members) {
  std::vector<Names> names(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) names[i].push_back(members[i].name);
  for (const Member& member : members) {
    if (member.tied_to) names[*member.tied_to].push_back(member.name);
  }
  return names;
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.is_same(b) || (a.shape() == b.shape() && a.to_vector() == b.to_vector());
}

// The value of a member, under any of its names, or an undefined Tensor.
Tensor value_for(const Names& names, const Values& values) {
  Tensor value;
  std::string value_name;
  for (const std::string& name : names) {
    const auto found = values.find(name);
    if (found == values.end()) continue;
    if (value.defined() && !same_values(value, found->second)) {
      fail<ValueError>("[load] the layer ties '{}' and '{}', but the state has different values for them",
                       value_name, name);
    }
    value = found->second;
    value_name = name;
  }
  return value;
}

// A checked write, which can't fail.
struct Write {
  Tensor to;
  Tensor value;  // row-major, of the same shape and dtype
};

void write(Write& write) {
  dispatch(write.to.dtype(), [&]<class T>() {
    const auto bytes = static_cast<std::size_t>(write.to.numel()) * sizeof(T);
    if (bytes > 0) std::memcpy(write.to.mutable_data<T>(), write.value.data<T>(), bytes);
  });
}

std::vector<std::string> unexpected_names(const Values& values, const std::vector<Member>& members) {
  std::set<std::string_view> expected;
  for (const Member& member : members) expected.insert(member.name);
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    if (!expected.contains(name)) names.push_back(name);
  }
  return names;
}

// A state from elsewhere, or from before a setting was named, may not have it.
std::vector<LoadReport::OtherSetting> other_settings(const std::vector<Setting>& settings,
                                                     const State& state) {
  std::vector<LoadReport::OtherSetting> others;
  for (const auto& [name, value, compared] : settings) {
    const auto found = state.settings.find(name);
    if (compared && found != state.settings.end() && found->second != value) {
      others.push_back({name, value, found->second});
    }
  }
  return others;
}

}  // namespace

std::string to_string(const LoadReport& report) {
  std::string text = fmt::format("{} loaded", report.loaded.size());
  for (const std::string& name : report.missing) text += "\n  missing: " + detail::printable(name);
  for (const std::string& name : report.unexpected) text += "\n  unexpected: " + detail::printable(name);
  for (const auto& [name, expected, found] : report.misshaped) {
    text += fmt::format("\n  mis-shaped: {} is {} in the layer and {} in the state", detail::printable(name),
                        to_string(expected), to_string(found));
  }
  for (const auto& [name, expected, found] : report.settings) {
    text +=
        fmt::format("\n  made otherwise: {} is {} in the layer and {} in the state", name, expected, found);
  }
  return text;
}

LoadError::LoadError(LoadReport found)
    : Error(
          "[load] the state does not fit the layer, and nothing was loaded (pass {.partial = true} to load "
          "the tensors that fit): " +
          to_string(found)),
      report(std::move(found)) {}

namespace detail {

State state(const std::vector<Member>& members, const std::vector<Setting>& settings) {
  State state;
  for (const Setting& setting : settings) state.settings[setting.name] = setting.value;
  for (const Member& member : members) {
    if (member.tied_to) {
      state.aliases.push_back({member.name, members[*member.tied_to].name});
    } else {
      state.tensors.push_back({member.name, clone(member.tensor->detach())});
    }
  }
  return state;
}

LoadReport load(const std::vector<Member>& members, const std::vector<Setting>& settings, const State& state,
                const LoadOptions& options) {
  const Values values = values_by_name(state);
  LoadReport report;
  report.settings = other_settings(settings, state);
  report.unexpected = unexpected_names(values, members);
  const std::vector<Names> names = names_of_member(members);
  std::vector<Write> writes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [name, tensor, role, tied_to] = members[i];
    if (tied_to) continue;
    const Tensor value = value_for(names[i], values);
    if (!value.defined()) {
      report.missing.push_back(name);
    } else if (value.shape() != tensor->shape()) {
      report.misshaped.push_back({name, tensor->shape(), value.shape()});
    } else {
      report.loaded.push_back(name);
      writes.push_back({*tensor, contiguous(to(value, tensor->dtype()))});
    }
  }
  if (!options.partial && !report.complete()) {
    report.loaded.clear();
    throw LoadError(std::move(report));
  }
  for (Write& ready : writes) write(ready);
  return report;
}

}  // namespace detail
}  // namespace fovea
