#include "fovea/layers/tap.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "fovea/autograd/base/scoped_value.h"
#include "fovea/autograd/graph/recompute.h"
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

using HooksScope = detail::ScopedValue<detail::ActiveHooks*>;

// The hooks on a recomputed function. In its first run they may read values, but not replace them. In later
// runs nothing is reported, but the answers to `wants` are those of the first run, because a layer may take
// another path, with other bits, for a value that is asked for.
class HooksOfRecomputed final : public detail::RerunState {
 public:
  std::shared_ptr<void> open_first_run() override {
    return detail::active_hooks ? std::make_shared<FirstRun>(wanted_) : nullptr;
  }
  std::shared_ptr<void> open_rerun() override { return std::make_shared<Rerun>(wanted_); }

 private:
  class FirstRun final : detail::ActiveHooks {
   public:
    explicit FirstRun(std::vector<bool>& wanted) : wanted_(wanted), scope_(detail::active_hooks, this) {}

    bool wants(const Site& layer, std::string_view name) override {
      wanted_.push_back(scope_.before()->wants(layer, name));
      return wanted_.back();
    }
    Tensor tap(const Site& layer, std::string_view name, const Tensor& value) override {
      if (scope_.before()->tap(layer, name, value).is_same(value)) return value;
      fail<GraphError>(
          "[recompute] Hooks replace '{}', shape {}, in a layer that backward computes again, where it would "
          "not "
          "be replaced: call the layer itself, or open a NoGrad scope",
          name, to_string(value.shape()));
    }

   private:
    std::vector<bool>& wanted_;
    HooksScope scope_;
  };

  class Rerun final : detail::ActiveHooks {
   public:
    explicit Rerun(const std::vector<bool>& wanted) : wanted_(wanted), scope_(detail::active_hooks, this) {}

    bool wants(const Site&, std::string_view) override { return next_ < wanted_.size() && wanted_[next_++]; }
    Tensor tap(const Site&, std::string_view, const Tensor& value) override { return value; }

   private:
    const std::vector<bool>& wanted_;
    std::size_t next_ = 0;
    HooksScope scope_;
  };

  std::vector<bool> wanted_;  // in the order in which layers asked
};

[[maybe_unused]] const bool recompute_knows_hooks = [] {
  detail::set_rerun_state(
      []() -> std::unique_ptr<detail::RerunState> { return std::make_unique<HooksOfRecomputed>(); });
  return true;
}();

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
  for (const auto& [name, calls] : calls_) reported += (reported.empty() ? "" : ", ") + name;
  fail<ValueError>("[Hooks] nothing was recorded as '{}'; reported so far: {}", path,
                   reported.empty() ? "nothing" : reported);
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
      // A replacement may call layers, and its own hook must not run on them.
      const HooksScope without_hooks(detail::active_hooks, nullptr);
      current = hook.replacement(tapped);
      check_replacement(path, value, current);
    } else {
      records_.push_back(tapped);
    }
  }
  return current;
}

}  // namespace fovea
