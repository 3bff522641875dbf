#pragma once

#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// A second name of a saved tensor.
struct Alias {
  std::string name;
  std::string original;
};

/// The tensors of a layer by name, parameters, frozen ones and buffers, outside any graph. A tied tensor is
/// there once, with its other names as aliases.
struct State {
  std::vector<NamedTensor> tensors;
  std::vector<Alias> aliases;
};

/// What `load` did, or would have done, with each name.
struct LoadReport {
  struct Misshaped {
    std::string name;
    Shape expected;  ///< the layer's
    Shape found;     ///< the state's
  };
  std::vector<std::string> loaded;      ///< the layer's tensors that got their values from the state
  std::vector<std::string> missing;     ///< in the layer and not in the state
  std::vector<std::string> unexpected;  ///< in the state and not in the layer
  std::vector<Misshaped> misshaped;     ///< in both, in different shapes

  bool complete() const { return missing.empty() && unexpected.empty() && misshaped.empty(); }
};

/// One line per name that did not fit.
FOVEA_API std::string to_string(const LoadReport& report);

/// A state does not fit a layer. Nothing has been loaded.
class FOVEA_API LoadError : public Error {
 public:
  explicit LoadError(LoadReport found);
  LoadReport report;
};

struct LoadOptions {
  bool partial = false;  ///< load what fits and leave the rest of the layer as it is, instead of an error
};

namespace detail {
FOVEA_API State state(const std::vector<Member>& members);
FOVEA_API LoadReport load(const std::vector<Member>& members, const State& state, const LoadOptions& options);
}  // namespace detail

/// A copy of a layer's tensors as they are now. Throws: as `members`.
template <class L>
State state(const L& layer) {
  return detail::state(members(layer));
}

/// Writes a state's values into a layer's own tensors, so that optimizers and other handles see them; values
/// of another dtype are converted. What is tied in the layer stays so: it is loaded by any one of its names.
///
/// Throws: LoadError, with the report, if the layer is not filled completely and exactly, unless `partial` is
/// set; ValueError if the state has a name twice, or an alias of nothing, or different values for one tied
/// tensor. Nothing has been written then.
template <class L>
LoadReport load(L& layer, const State& state, const LoadOptions& options = {}) {
  return detail::load(members(layer), state, options);
}

}  // namespace fovea
