#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"
#include "fovea/autograd/tensor/tensor.h"

/// A layer is a plain struct that names its members in one function:
///
///   struct Block {
///     LayerNorm norm;
///     std::optional<SelfAttention> attention;
///     std::vector<Linear> mlp;
///     Tensor scale;  // made with parameter(...)
///     static void visit(const Block& self, Visitor& v) {
///       v("norm", self.norm);
///       v("attention", self.attention);
///       v("mlp", self.mlp);
///       v("scale", self.scale);
///     }
///   };
///
/// All functions below work on any such struct. The names of nested members are joined with dots: "mlp.0.W".
///
/// Copying a layer shares its tensors, as copying a Tensor does; `clone` gives the copy tensors of its own.
/// So `std::vector<Block>(n, block)` would silently tie n blocks. Therefore two members that share an array
/// without a declared tie are an error in every function below.
namespace fovea {

class Visitor;

/// A type with `static void visit(const L& self, Visitor& v)`. The function may be a template.
template <class L>
concept Layer = requires(const L& layer, Visitor& v) {
  L::visit(layer, v);
};

/// How training treats a tensor of a layer: a parameter is learned; a frozen tensor is a weight that stays as
/// it is; a buffer is not a weight. All three are saved.
enum class Role : std::uint8_t { parameter, frozen, buffer };

/// One tensor of a layer.
struct Member {
  std::string name;
  const Tensor* tensor = nullptr;
  Role role = Role::parameter;
  std::optional<std::size_t> tied_to = {};  ///< the index in the list of the member whose tensor it shares
};

/// Identifies a layer by address and type. The type is needed because a struct and its first member have the
/// same address.
struct Site {
  const void* address = nullptr;
  std::type_index type = typeid(void);
  friend bool operator==(const Site&, const Site&) = default;
};
template <class L>
Site site_of(const L* layer) {
  return {layer, typeid(L)};
}

/// A layer within another one, by name. The outermost layer is listed too, with an empty name.
struct NestedLayer {
  std::string name;
  Site site;
};

/// What a layer computes with besides its tensors, such as a number of heads or a kind of positions, as text.
struct Setting {
  std::string name;
  std::string value;
  /// Whether a layer with another value computes something else from the same tensors, so that `load` refuses
  /// it. Dropout, for instance, is no such setting.
  bool compared = true;
};

/// The settings of a layer, or of a file, by name.
using Settings = std::map<std::string, std::string>;

/// Collects the members that a layer's `visit` names. It does not change them.
class FOVEA_API Visitor {
 public:
  /// Names a parameter, a layer, or a vector, array, optional or variant of those. An undefined Tensor (the
  /// bias of a layer without one) is left out.
  template <class T>
  void operator()(std::string_view name, const T& member);

  /// Names a member whose tensors are frozen, or buffers.
  template <class T>
  void frozen(std::string_view name, const T& member) {
    in_role(Role::frozen, name, member);
  }
  template <class T>
  void buffer(std::string_view name, const T& member) {
    in_role(Role::buffer, name, member);
  }

  // A temporary is not a member, and is destroyed before its address is used.
  template <class T>
  void operator()(std::string_view name, const T&& member) = delete;
  template <class T>
  void frozen(std::string_view name, const T&& member) = delete;
  template <class T>
  void buffer(std::string_view name, const T&& member) = delete;

  /// Declares that two members of this layer hold the same Tensor: `v.tie("head.W", "body.W")` after
  /// `head.W = body.W` in the constructor. The tensor is counted and saved once, as `original`.
  void tie(std::string_view name, std::string_view original);

  /// Names a setting. It is saved with the tensors, and `load` compares it.
  void setting(std::string_view name, std::string value, bool compared = true) {
    settings_.push_back({full(name), std::move(value), compared});
  }

  /// All tensors in the order in which they were named.
  /// Throws: ValueError for two members of the same name, an array shared without a declared tie, or a
  /// declared tie of different tensors; GraphError for a tensor that was computed by an op, and for a frozen
  /// tensor or buffer that requires a gradient.
  std::vector<Member> members() &&;

  /// All layers within the visited one, in the order in which they were named.
  std::vector<NestedLayer> layers() && { return std::move(layers_); }

  /// All settings, in the order in which they were named.
  std::vector<Setting> settings() && { return std::move(settings_); }

 private:
  template <class T>
  void in_role(Role role, std::string_view name, const T& member) {
    const Role before = std::exchange(role_, std::max(role_, role));
    (*this)(name, member);
    role_ = before;
  }
  void add(std::string_view name, const Tensor& tensor);
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

  std::string prefix_;
  Role role_ = Role::parameter;
  std::vector<Member> members_;
  std::vector<NestedLayer> layers_;
  std::vector<Setting> settings_;
  std::vector<std::pair<std::string, std::string>> ties_;
};

/// Makes a leaf that requires a gradient. Constructors make their weights with it, for example
/// `W(parameter(uniform({in, out}, rng, -a, a)))`; frozen tensors and buffers are made without it.
FOVEA_API Tensor parameter(const Tensor& initial);

namespace detail {
template <class>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool is_vector<std::array<T, N>> = true;
template <class>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

FOVEA_API std::vector<NamedTensor> named_parameters(const std::vector<Member>& members);
FOVEA_API std::vector<NamedTensor> trainable_parameters(const std::vector<Member>& members);
FOVEA_API std::int64_t parameter_count(const std::vector<Member>& members);
FOVEA_API void freeze(const std::vector<Member>& members);
FOVEA_API std::string to_string(const std::vector<Member>& members);
// Calls change(tensor) for the tensor of each member that is not tied, and then ties the others as before.
// The members must belong to a layer that is not const.
FOVEA_API void change_tensors(const std::vector<Member>& members, const std::function<void(Tensor&)>& change);
// Replaces the tensor of each member by a copy of its own, converted to a dtype if one is given, and ties
// them as before. The members must belong to a layer that is not const.
FOVEA_API void replace_tensors(const std::vector<Member>& members, std::optional<Dtype> dtype);
}  // namespace detail

/// Every tensor of a layer. The other functions here are built on it.
/// Throws: as Visitor::members.
template <class L>
std::vector<Member> members(const L& layer) {
  static_assert(Layer<L>,
                "a layer needs `static void visit(const L& self, Visitor& v)`, which names its members");
  Visitor visitor;
  L::visit(layer, visitor);
  return std::move(visitor).members();
}

/// A layer and all layers within it, with their names.
template <Layer L>
std::vector<NestedLayer> nested_layers(const L& layer) {
  Visitor visitor;
  L::visit(layer, visitor);
  std::vector<NestedLayer> layers = std::move(visitor).layers();
  layers.insert(layers.begin(), {"", site_of(&layer)});
  return layers;
}

/// The settings of a layer and of all layers within it.
template <Layer L>
std::vector<Setting> settings(const L& layer) {
  Visitor visitor;
  L::visit(layer, visitor);
  return std::move(visitor).settings();
}

/// The parameters of a layer with their names, in the order of `visit`. A tied tensor is listed once. The
/// handles share the layer's tensors.
template <class L>
std::vector<NamedTensor> named_parameters(const L& layer) {
  return detail::named_parameters(members(layer));
}

/// Those of the named parameters that require a gradient: what an optimizer takes after `freeze(model.part)`
/// has left a part of the model out of training.
template <class L>
std::vector<NamedTensor> trainable_parameters(const L& layer) {
  return detail::trainable_parameters(members(layer));
}

/// The number of elements of all parameters.
template <class L>
std::int64_t parameter_count(const L& layer) {
  return detail::parameter_count(members(layer));
}

/// Turns gradients off for all tensors of a layer: in a constructor that declares it frozen, or before a part
/// of a model is left out of training. Gradients still flow through the layer to its input.
template <class L>
void freeze(const L& layer) {
  detail::freeze(members(layer));
}

/// A copy with tensors of its own, tied among themselves like the original's. Gradients are not copied.
template <Layer L>
L clone(const L& layer) {
  L copy = layer;
  detail::replace_tensors(members(copy), std::nullopt);
  return copy;
}

/// A copy whose tensors are converted to a dtype, otherwise like `clone`.
template <Layer L>
L to(const L& layer, Dtype dtype) {
  L copy = layer;
  detail::replace_tensors(members(copy), dtype);
  return copy;
}

/// A text with the name, dtype and shape of each tensor, and the number of parameters. fmt::print("{}",
/// layer) prints it.
template <Layer L>
std::string to_string(const L& layer) {
  return detail::to_string(members(layer));
}

template <class T>
void Visitor::operator()(std::string_view name, const T& member) {
  if constexpr (std::same_as<T, Tensor>) {
    add(name, member);
  } else if constexpr (detail::is_optional<T>) {
    if (member) (*this)(name, *member);
  } else if constexpr (detail::is_variant<T>) {
    std::visit([&](const auto& chosen) { (*this)(name, chosen); }, member);
  } else if constexpr (Layer<T> || detail::is_vector<T>) {
    if constexpr (Layer<T>) layers_.push_back({full(name), site_of(&member)});
    const std::string outer = std::exchange(prefix_, full(name) + ".");
    if constexpr (Layer<T>) {
      T::visit(member, *this);
    } else {
      std::size_t position = 0;
      for (const auto& element : member) (*this)(std::to_string(position++), element);
    }
    prefix_ = outer;
  } else {
    static_assert(
        Layer<T>,
        "a member named in `visit` must be a Tensor, a layer (a type with `static void visit(const L&, "
        "Visitor&)`), or a vector, array, optional or variant of those; do not name other members");
  }
}

}  // namespace fovea

template <fovea::Layer L>
struct fmt::formatter<L> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const L& layer, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(fovea::to_string(layer), context);
  }
};
