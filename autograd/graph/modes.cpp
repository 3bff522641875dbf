#include "fovea/autograd/graph/modes.h"

#include <utility>

namespace fovea {
namespace {

thread_local TrainMode* open_scope = nullptr;

}  // namespace

TrainMode::TrainMode(const Rng& rng) : rng_(rng), before_(std::exchange(open_scope, this)) {}
TrainMode::~TrainMode() { open_scope = before_; }

EvalMode::EvalMode() : before_(std::exchange(open_scope, nullptr)) {}
EvalMode::~EvalMode() { open_scope = before_; }

bool training() { return open_scope != nullptr; }

std::optional<Rng::State> training_state() {
  if (!open_scope) return std::nullopt;
  return open_scope->rng().state();
}

std::uint64_t detail::draw_key() { return open_scope->rng().next(); }

}  // namespace fovea
