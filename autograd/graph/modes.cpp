#include "fovea/autograd/graph/modes.h"

#include <utility>

namespace fovea {
namespace {

thread_local Training* open_scope = nullptr;

}  // namespace

Training::Training(const Rng& rng) : rng_(rng), before_(std::exchange(open_scope, this)) {}
Training::~Training() { open_scope = before_; }

Inference::Inference() : before_(std::exchange(open_scope, nullptr)) {}
Inference::~Inference() { open_scope = before_; }

bool training() { return open_scope != nullptr; }

std::optional<Rng::State> training_state() {
  if (!open_scope) return std::nullopt;
  return open_scope->rng().state();
}

std::uint64_t detail::draw_key() { return open_scope->rng().next(); }

}  // namespace fovea
