#include "fovea/layers/tap.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "fovea/layers/name_matches.h"

namespace fovea {
namespace {

std::string path_of(std::string_view layer, std::string_view name) {
  return layer.empty() ? std::string(name) : fmt::format("{}.{}", layer, name);
}

void check_replacement(const std::string& path, const Tensor& value, const Tensor& replaced) {
  if (!replaced.defined() || replaced.shape() != value.shape()) {
    fail<ShapeError>("[Hooks] the replacement of '{}' must keep its shape {}, and is {}", path,
                     to_string(value.shape()),
                     replaced.defined() ? to_string(replaced.shape()) : "undefined");
  }
  if (replaced.dtype() != value.dtype()) {
    fail<DtypeError>("[Hooks] the replacement of '{}' must keep its dtype {}, and is {}", path,
                     name_of(value.dtype()), name_of(replaced.dtype()));
  }
}

// Suspends all hooks: a replacement may call layers, and its own hook must not run on them.
class WithoutHooks {
 public:
  WithoutHooks() : outer_(std::exchange(detail::active_hooks, nullptr)) {}
  ~WithoutHooks() { detail::active_hooks = outer_; }
  WithoutHooks(const WithoutHooks&) = delete;
  WithoutHooks& operator=(const WithoutHooks&) = delete;

 private:
  detail::ActiveHooks* outer_;
};

}  // namespace

constinit thread_local detail::ActiveHooks* detail::active_hooks = nullptr;

std::string Tapped::path() const { return path_of(layer, name); }

Hooks::Hooks(std::vector<NestedLayer> layers) : layers_(std::move(layers)), outer_(detail::active_hooks) {
  detail::active_hooks = this;
}

Hooks::~Hooks() { detail::active_hooks = outer_; }

Hooks& Hooks::record(std::string_view path) {
  hooks_.push_back({std::string(path), {}});
  return *this;
}

Hooks& Hooks::replace(std::string_view path, Replacement replacement) {
  if (!replacement) fail<ValueError>("[Hooks] the replacement of '{}' is an empty function", path);
  hooks_.push_back({std::string(path), std::move(replacement)});
  return *this;
}

const Tensor& Hooks::operator[](std::string_view path) const {
  const auto last = std::find_if(records_.rbegin(), records_.rend(),
                                 [&](const Tapped& tapped) { return tapped.path() == path; });
  if (last != records_.rend()) return last->value;
  std::string reported;
  for (const auto& [name, calls] : calls_) reported += "\n  " + name;
  fail<ValueError>("[Hooks] nothing was recorded as '{}'; reported so far:{}", path,
                   reported.empty() ? " nothing" : reported);
}

const std::string* Hooks::name_of(const Site& layer) const {
  const auto found = std::ranges::find(layers_, layer, &NestedLayer::site);
  return found == layers_.end() ? nullptr : &found->name;
}

bool Hooks::wants(const Site& layer, std::string_view name) {
  if (outer_ && outer_->wants(layer, name)) return true;
  const std::string* layer_name = name_of(layer);
  return layer_name && std::ranges::any_of(hooks_, [&](const Hook& hook) {
           return name_matches(hook.path, path_of(*layer_name, name));
         });
}

Tensor Hooks::tap(const Site& layer, std::string_view name, const Tensor& value) {
  Tensor current = outer_ ? outer_->tap(layer, name, value) : value;
  const std::string* layer_name = name_of(layer);
  if (!layer_name) return current;
  const std::string path = path_of(*layer_name, name);
  const std::int64_t call = calls_[path]++;
  for (const Hook& hook : hooks_) {
    if (!name_matches(hook.path, path)) continue;
    const Tapped tapped{*layer_name, std::string(name), call, current};
    if (hook.replacement) {
      const WithoutHooks scope;
      current = hook.replacement(tapped);
      check_replacement(path, value, current);
    } else {
      records_.push_back(tapped);
    }
  }
  return current;
}

}  // namespace fovea
