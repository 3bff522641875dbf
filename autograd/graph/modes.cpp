#include "fovea/autograd/graph/modes.h"

#include "autograd/graph/thread_modes.h"

namespace fovea {

using detail::modes;

constinit thread_local detail::ThreadModes detail::modes;

NoGrad::NoGrad() : recording_(modes.recording, false) {}
Anomaly::Anomaly() : anomaly_(modes.anomaly, true) {}
TrainMode::TrainMode(const Rng& rng) : rng_(rng), scope_(modes.training, this) {}
EvalMode::EvalMode() : scope_(modes.training, nullptr) {}

bool recording() { return modes.recording; }
bool training() { return modes.training != nullptr; }

std::optional<Rng::State> training_state() {
  if (!modes.training) return std::nullopt;
  return modes.training->rng().state();
}

std::uint64_t detail::draw_key() { return modes.training->rng().next(); }

}  // namespace fovea
