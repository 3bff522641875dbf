#include "fovea/layers/tap.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "fovea/layers/name_matches.h"

namespace fovea {
namespace {

std::string joined(std::string_view layer, std::string_view name) {
  return layer.empty() ? std::string(name) : fmt::format("{}.{}", layer, name);
}

void check_replacement(const std::string& path, const Tensor& value, const Tensor& replaced) {
  if (!replaced.defined() || replaced.shape() != value.shape()) {
    fail<ShapeError>("[Hooks] '{}' has shape {} and was to be replaced by {}: keep the shape", path,
                     to_string(value.shape()), replaced.defined() ? to_string(replaced.shape()) : "nothing");
  }
  if (replaced.dtype() != value.dtype()) {
    fail<DtypeError>("[Hooks] '{}' is {} and was to be replaced by {}: keep the dtype", path,
                     name_of(value.dtype()), name_of(replaced.dtype()));
  }
}

// What a replacement computes with layers of its own is not reported, least of all to itself.
class Unwatched {
 public:
  Unwatched() : before_(std::exchange(detail::watcher, nullptr)) {}
  ~Unwatched() { detail::watcher = before_; }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  detail::Watcher* before_;
};

}  // namespace

constinit thread_local detail::Watcher* detail::watcher = nullptr;

std::string Tapped::path() const { return joined(layer, name); }

Hooks::Hooks(std::vector<NestedLayer> layers) : layers_(std::move(layers)), before_(detail::watcher) {
  detail::watcher = this;
}

Hooks::~Hooks() { detail::watcher = before_; }

Hooks& Hooks::record(std::string_view path) {
  requests_.push_back({std::string(path), {}});
  return *this;
}

Hooks& Hooks::replace(std::string_view path, Replacement replacement) {
  if (!replacement) fail<ValueError>("[Hooks] '{}' was to be replaced by an empty function", path);
  requests_.push_back({std::string(path), std::move(replacement)});
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
  if (before_ && before_->wants(layer, name)) return true;
  const std::string* layer_name = name_of(layer);
  return layer_name && std::ranges::any_of(requests_, [&](const Request& request) {
           return name_matches(request.path, joined(*layer_name, name));
         });
}

Tensor Hooks::tap(const Site& layer, std::string_view name, const Tensor& value) {
  Tensor now = before_ ? before_->tap(layer, name, value) : value;
  const std::string* layer_name = name_of(layer);
  if (!layer_name) return now;
  const std::string path = joined(*layer_name, name);
  const std::int64_t call = calls_[path]++;
  for (const Request& request : requests_) {
    if (!name_matches(request.path, path)) continue;
    const Tapped tapped{*layer_name, std::string(name), call, now};
    if (request.replacement) {
      const Unwatched scope;
      now = request.replacement(tapped);
      check_replacement(path, value, now);
    } else {
      records_.push_back(tapped);
    }
  }
  return now;
}

}  // namespace fovea
