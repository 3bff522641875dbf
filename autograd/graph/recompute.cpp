#include "fovea/autograd/graph/recompute.h"

#include <algorithm>
#include <optional>

#include "autograd/base/fail.h"
#include "autograd/graph/node.h"
#include "autograd/graph/thread_modes.h"

namespace fovea::detail {
namespace {

using Tensors = std::vector<Tensor>;

// A function that can be run again. Its results are to be differentiated themselves only if `create_graph`.
using Function = std::function<Tensors(const Tensors& inputs, bool create_graph)>;

constinit MakeRerunState make_rerun_state = nullptr;

// The state of the thread in which a function runs first.
struct Context {
  bool anomaly = modes.anomaly;
  std::optional<Rng::State> training = training_state();
  std::shared_ptr<RerunState> state = make_rerun_state ? make_rerun_state() : nullptr;
};

// The ops of a first run are not recorded, since the function is recorded as one op. One that would be must
// not depend on anything but the function's inputs.
class FirstRun final : RecordHook {
 public:
  FirstRun(const Tensors& inputs, const Context& context)
      : inputs_(inputs),
        hook_(modes.record_hook, this),
        state_(context.state ? context.state->open_first_run() : nullptr) {}

  bool should_record(const char* op, TensorRefs op_inputs) override {
    for (const Tensor& x : op_inputs) check(op, x);
    return false;
  }

  void check(const char* op, const Tensor& x) const {
    if (!x.defined() || !x.requires_grad()) return;
    const auto is_x = [&](const Tensor& input) {
      return impl_of(input).node == impl_of(x).node && impl_of(input).output == impl_of(x).output;
    };
    if (std::ranges::any_of(inputs_, is_x)) return;
    fail<GraphError>(
        "[recompute] '{}' uses a tensor of shape {} that requires a gradient and is not an argument of the "
        "recomputed function, so its gradient would be lost: pass it as an argument, or the layer it belongs "
        "to",
        op, to_string(x.shape()));
  }

 private:
  const Tensors& inputs_;
  ScopedValue<RecordHook*> hook_;
  std::shared_ptr<void> state_;
};

// A later run is recorded, on a thread in the state of the first.
class Rerun {
 public:
  explicit Rerun(const Context& context)
      : anomaly_(modes.anomaly, context.anomaly),
        state_(context.state ? context.state->open_rerun() : nullptr) {
    if (context.training) training_.emplace(Rng(*context.training));
  }

 private:
  WithGraph graph_;
  ScopedValue<bool> anomaly_;
  std::shared_ptr<void> state_;
  EvalMode evaluation_;
  std::optional<TrainMode> training_;
};

Tensors detached(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& x : tensors) result.push_back(x.defined() ? x.detach() : Tensor());
  return result;
}

// The gradient of f with respect to the inputs that are `needed`, as a function that can be run again as
// well: of the n inputs of f, followed by the cotangents of its outputs, undefined where an output was not
// used.
Function gradient_of(const Function& f, const Context& context, std::size_t n,
                     const std::vector<std::size_t>& needed) {
  return [=](const Tensors& arguments, bool create_graph) {
    Tensors inputs(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(n));
    Tensors chosen;
    for (const std::size_t i : needed) {
      if (!inputs[i].requires_grad()) inputs[i] = inputs[i].detach().set_requires_grad();
      chosen.push_back(inputs[i]);
    }
    const Rerun scope(context);
    const Tensors outputs = f(inputs, true);
    Tensors used, cotangents;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!arguments[n + k].defined()) continue;
      used.push_back(outputs[k]);
      cotangents.push_back(arguments[n + k]);
    }
    return grad(used, chosen, {.gradients = cotangents, .create_graph = create_graph, .allow_unused = true});
  };
}

// Records `values`, which f has given for these inputs, as one op. Its rule runs f again on leaves of its
// own, so that the inner pass ends there. Where the rule itself is recorded, it is an op of the same kind.
Tensors record_rerun(const char* name, Tensors values, const Tensors& inputs, const Function& f,
                     const Context& context) {
  const std::vector<std::reference_wrapper<const Tensor>> refs(inputs.begin(), inputs.end());
  record_values(name, values, refs, refs, Order::any,
                [f, context, n = inputs.size()](const Saved& saved, std::span<const Tensor> cotangents,
                                                const NeedsGradient& needs) {
                  Tensors arguments;
                  std::vector<std::size_t> needed;
                  for (std::size_t i = 0; i < n; ++i) {
                    arguments.push_back(saved[i]);
                    if (needs[i]) needed.push_back(i);
                  }
                  arguments.insert(arguments.end(), cotangents.begin(), cotangents.end());

                  const Function gradient = gradient_of(f, context, n, needed);
                  Tensors found = gradient(detached(arguments), false);
                  if (recording()) {
                    found = record_rerun("recompute_gradient", found, arguments, gradient, context);
                  }
                  Gradients gradients(n, {});
                  for (std::size_t k = 0; k < found.size(); ++k) gradients[needed[k]] = found[k];
                  return gradients;
                });
  return values;
}

}  // namespace

void set_rerun_state(MakeRerunState make) { make_rerun_state = make; }

Tensor recompute(const std::function<Tensor()>& forward,
                 const std::function<Tensor(const std::vector<Tensor>&)>& rerun, const Tensors& inputs) {
  if (!recording()) return forward();
  const Context context;
  Tensor value;
  {
    const FirstRun scope(inputs, context);
    value = forward();
    scope.check("return", value);
  }
  const Function f = [rerun](const Tensors& in, bool) { return Tensors{rerun(in)}; };
  return record_rerun("recompute", {value}, inputs, f, context)[0];
}

}  // namespace fovea::detail
