#pragma once

#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// A second name of a tensor in a state.
struct Alias {
  std::string name;
  std::string original;
};

/// All tensors of a layer by name: parameters, frozen tensors and buffers, outside any graph. A tied tensor
/// is listed once, and its other names are aliases. Settings say how the layer was made.
struct State {
  std::vector<NamedTensor> tensors;
  std::vector<Alias> aliases;
  Settings settings = {};
};

/// What `load` did with each name, or found wrong with it.
struct LoadReport {
  struct Misshaped {
    std::string name;
    Shape expected;  ///< the layer's
    Shape found;     ///< the state's
  };
  struct OtherSetting {
    std::string name;
    std::string expected;  ///< the layer's
    std::string found;     ///< the state's
  };
  std::vector<std::string> loaded;      ///< tensors of the layer whose values were taken from the state
  std::vector<std::string> missing;     ///< tensors of the layer that are not in the state
  std::vector<std::string> unexpected;  ///< tensors of the state that are not in the layer
  std::vector<Misshaped> misshaped;     ///< tensors whose shapes differ
  std::vector<OtherSetting> settings;   ///< settings with which the layer computes something else

  bool complete() const {
    return missing.empty() && unexpected.empty() && misshaped.empty() && settings.empty();
  }
};

/// A text with one line per name that did not fit.
FOVEA_API std::string to_string(const LoadReport& report);

/// Thrown when a state does not fit a layer. Nothing has been loaded then.
class FOVEA_API LoadError : public Error {
 public:
  explicit LoadError(LoadReport found);
  LoadReport report;
};

struct LoadOptions {
  bool partial = false;  ///< load the tensors that fit and keep all others, instead of throwing LoadError
};

namespace detail {
FOVEA_API State state(const std::vector<Member>& members, const std::vector<Setting>& settings);
FOVEA_API LoadReport load(const std::vector<Member>& members, const std::vector<Setting>& settings,
                          const State& state, const LoadOptions& options);
}  // namespace detail

/// Copies a layer's tensors and settings. Throws: as `members`.
template <class L>
State state(const L& layer) {
  return detail::state(members(layer), settings(layer));
}

/// Writes the values of a state into a layer's own tensors, so optimizers and other handles see them. Values
/// of another dtype are converted. A tensor that is tied in the layer stays tied, and is loaded from any of
/// its names.
///
/// Throws: LoadError, with the report, if names, shapes or settings do not match exactly and `partial` is not
/// set (a setting that the state does not have matches); ValueError if the state has a name twice, an alias
/// of a name that it does not have, or different values for a tied tensor. Nothing has been written then.
template <class L>
LoadReport load(L& layer, const State& state, const LoadOptions& options = {}) {
  return detail::load(members(layer), settings(layer), state, options);
}

}  // namespace fovea
