#include "fovea/layers/checkpoint.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "autograd/base/fail.h"
#include "autograd/graph/node.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/layers/tap.h"

namespace fovea::detail {
namespace {

using Tensors = std::vector<Tensor>;

// What can be run again: outputs from inputs, recorded. Those of a gradient are to be differentiated
// themselves only if `differentiable`.
using Function = std::function<Tensors(const Tensors& inputs, bool differentiable)>;

// What the hooks of a forward pass wanted, in the order they were asked: it decides on paths, hence on
// bits. Null if there were no hooks.
using Wanted = std::shared_ptr<std::vector<bool>>;

// What an op's behaviour depends on besides its inputs.
struct Scopes {
  bool watching = anomaly_mode();
  std::optional<Rng::State> training = training_state();
  Wanted wanted = active_hooks ? std::make_shared<std::vector<bool>>() : nullptr;
};

// Stands before the hooks in the forward pass: they may read what will be computed again, and no more.
class ReadOnly final : public ActiveHooks {
 public:
  explicit ReadOnly(const Wanted& wanted) : wanted_(wanted), before_(active_hooks) {
    if (wanted_) active_hooks = this;
  }
  ~ReadOnly() { active_hooks = before_; }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

  bool wants(const Site& layer, std::string_view name) override {
    wanted_->push_back(before_->wants(layer, name));
    return wanted_->back();
  }
  Tensor tap(const Site& layer, std::string_view name, const Tensor& value) override {
    if (before_->tap(layer, name, value).impl() != value.impl()) {
      fail<GraphError>(
          "[checkpoint] Hooks replace '{}', shape {}, in what is computed again in backward, where it "
          "would "
          "not be replaced: leave out the checkpoint, or run the pass under NoGrad",
          name, to_string(value.shape()));
    }
    return value;
  }

 private:
  Wanted wanted_;
  ActiveHooks* before_;
};

// Stands in for them when it is computed again: the same paths are taken, and nothing is reported.
class Silent final : public ActiveHooks {
 public:
  explicit Silent(const Wanted& wanted) : wanted_(wanted), before_(active_hooks) {
    active_hooks = wanted_ ? this : nullptr;
  }
  ~Silent() { active_hooks = before_; }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  bool wants(const Site&, std::string_view) override {
    return next_ < wanted_->size() && (*wanted_)[next_++];
  }
  Tensor tap(const Site&, std::string_view, const Tensor& value) override { return value; }

 private:
  Wanted wanted_;
  std::size_t next_ = 0;
  ActiveHooks* before_;
};

// A forward pass that is run again, in the scopes of the first time. Whoever watches forward passes from
// outside has seen this one.
class Recomputation {
 public:
  explicit Recomputation(const Scopes& scopes)
      : recorded_(set_recording(true)),
        watched_(set_anomaly_mode(scopes.watching)),
        later_(set_recorded_later(nullptr)),
        silent_(scopes.wanted) {
    if (scopes.training) {
      training_.emplace(Rng(*scopes.training));
    } else {
      inference_.emplace();
    }
  }
  ~Recomputation() {
    set_recording(recorded_);
    set_anomaly_mode(watched_);
    set_recorded_later(later_);
  }
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;

 private:
  bool recorded_;
  bool watched_;
  const Tensors* later_;
  Silent silent_;
  std::optional<TrainMode> training_;
  std::optional<EvalMode> inference_;
};

// A forward pass whose recording is left to a Recomputation.
class RecordedLater {
 public:
  explicit RecordedLater(const Tensors& inputs) : before_(set_recorded_later(&inputs)) {}
  ~RecordedLater() { set_recorded_later(before_); }
  RecordedLater(const RecordedLater&) = delete;
  RecordedLater& operator=(const RecordedLater&) = delete;

 private:
  const Tensors* before_;
};

// Which of a function's inputs the gradient is taken of, and which of its outputs have a cotangent.
struct Choice {
  std::vector<std::size_t> inputs, outputs;

  Choice(const Tensors& all_inputs, std::span<const Tensor> cotangents, const NeedsGradient& needs) {
    for (std::size_t i = 0; i < all_inputs.size(); ++i) {
      if (needs[i]) inputs.push_back(i);
    }
    for (std::size_t i = 0; i < cotangents.size(); ++i) {
      if (cotangents[i].defined()) outputs.push_back(i);
    }
  }
};

Tensors pick(std::span<const Tensor> from, const std::vector<std::size_t>& places) {
  Tensors picked;
  picked.reserve(places.size());
  for (const std::size_t place : places) picked.push_back(from[place]);
  return picked;
}

// The gradient of f, as a function of n inputs of f and the chosen cotangents: it can be run again as well.
Function gradient_of(const Function& f, const Scopes& scopes, std::size_t n, const Choice& choice) {
  return [=](const Tensors& arguments, bool differentiable) {
    Tensors inputs(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(n));
    const Tensors cotangents(arguments.begin() + static_cast<std::ptrdiff_t>(n), arguments.end());
    for (const std::size_t i : choice.inputs) {
      if (!inputs[i].requires_grad()) inputs[i] = inputs[i].detach().set_requires_grad();
    }
    const Recomputation scope(scopes);
    const Tensors outputs = f(inputs, true);
    return grad(pick(outputs, choice.outputs), pick(inputs, choice.inputs),
                {.gradients = cotangents, .create_graph = differentiable, .allow_unused = true});
  };
}

// Records `values`, which f has given for these inputs, as one op. Its rule runs f again on leaves of its
// own, so that the inner pass ends there; where the rule itself is recorded, it is an op of the same kind.
Tensors record_rerun(const char* name, Tensors values, const Tensors& inputs, const Function& f,
                     const Scopes& scopes) {
  const std::vector<std::reference_wrapper<const Tensor>> refs(inputs.begin(), inputs.end());
  record_values(name, values, refs, refs, Order::any,
                [f, scopes, n = inputs.size()](const Saved& saved, std::span<const Tensor> cotangents,
                                               const NeedsGradient& needs) {
                  Tensors arguments;
                  for (std::size_t i = 0; i < n; ++i) arguments.push_back(saved[i]);
                  const Choice choice(arguments, cotangents, needs);
                  for (const std::size_t output : choice.outputs) arguments.push_back(cotangents[output]);

                  const Function gradient = gradient_of(f, scopes, n, choice);
                  Tensors found = gradient(detached(arguments), false);
                  if (recording()) {
                    found = record_rerun("checkpoint_gradient", found, arguments, gradient, scopes);
                  }

                  Gradients gradients(n, {});
                  for (std::size_t k = 0; k < found.size(); ++k) gradients[choice.inputs[k]] = found[k];
                  return gradients;
                });
  return values;
}

}  // namespace

Tensor checkpoint(const std::function<Tensor()>& forward, const Rerun& rerun, const Tensors& inputs) {
  if (!recording()) return forward();
  const Scopes scopes;
  Tensor value;
  {
    const RecordedLater later(inputs);
    const ReadOnly watchers(scopes.wanted);
    value = forward();
    check_recorded_later("return", inputs, value);
  }
  const Function f = [rerun](const Tensors& in, bool) { return Tensors{rerun(in)}; };
  return record_rerun("checkpoint", {value}, inputs, f, scopes)[0];
}

Tensors tensors_of(const std::vector<Member>& members) {
  Tensors tensors;
  for (const Member& member : members) {
    if (!member.tied_to) tensors.push_back(*member.tensor);
  }
  return tensors;
}

Tensors detached(const Tensors& tensors) {
  Tensors outside;
  outside.reserve(tensors.size());
  for (const Tensor& tensor : tensors) outside.push_back(tensor.detach());
  return outside;
}

void put_tensors(const std::vector<Member>& members, const Tensors& tensors) {
  const auto put = [](const Member& member, const Tensor& tensor) {
    *const_cast<Tensor*>(member.tensor) = tensor;
  };
  const auto own = std::ranges::count_if(members, [](const Member& member) { return !member.tied_to; });
  auto next = tensors.end() - own;
  for (const Member& member : members) {
    if (!member.tied_to) put(member, *next++);
  }
  for (const Member& member : members) {
    if (member.tied_to) put(member, *members[*member.tied_to].tensor);
  }
}

}  // namespace fovea::detail
