#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "fovea/layers/encoder.h"
#include "fovea/layers/gpt.h"

/// The options of models, each by its name: the one list that writing, reading and comparing them go through.
namespace fovea::detail {

// --- The names of values ---------------------------------------------------------------------------------

template <class E, std::size_t N>
using ValueNames = std::array<std::pair<const char*, E>, N>;

inline constexpr ValueNames<Positions, 6> names_of(Positions) {
  return {{{"learned", Positions::learned},
           {"sine-cosine", Positions::sine_cosine},
           {"rotary", Positions::rotary},
           {"alibi", Positions::alibi},
           {"relative", Positions::relative},
           {"none", Positions::none}}};
}
inline constexpr ValueNames<NormKind, 2> names_of(NormKind) {
  return {{{"layer", NormKind::layer}, {"rms", NormKind::rms}}};
}
inline constexpr ValueNames<NormPlace, 2> names_of(NormPlace) {
  return {{{"pre", NormPlace::pre}, {"post", NormPlace::post}}};
}
inline constexpr ValueNames<MlpKind, 7> names_of(MlpKind) {
  return {{{"gelu", MlpKind::gelu},
           {"gelu-tanh", MlpKind::gelu_tanh},
           {"relu", MlpKind::relu},
           {"silu", MlpKind::silu},
           {"swiglu", MlpKind::swiglu},
           {"geglu", MlpKind::geglu},
           {"none", MlpKind::none}}};
}
inline constexpr ValueNames<RotaryLayout, 2> names_of(RotaryLayout) {
  return {{{"halves", RotaryLayout::halves}, {"adjacent", RotaryLayout::adjacent}}};
}
inline constexpr ValueNames<RotaryScaling, 3> names_of(RotaryScaling) {
  return {{{"none", RotaryScaling::none}, {"linear", RotaryScaling::linear}, {"ntk", RotaryScaling::ntk}}};
}

// --- The options -----------------------------------------------------------------------------------------

/// Whether a model with another value of an option computes something else from the same tensors. Sizes that
/// have a default have no effect by themselves: the shapes of tensors show them.
enum class Effect : bool { none, on_values };

/// Calls f(name, option, effect) for each option; f.group(name, options, list) for options that may be
/// absent as a whole, where list(options) calls f for each.
template <class Options, class F>
void for_each_rotary_option(const std::string& prefix, Options& rotary, F& f) {
  f(prefix + "layout", rotary.layout, Effect::on_values);
  f(prefix + "base", rotary.base, Effect::on_values);
  f(prefix + "offset", rotary.offset, Effect::on_values);
  f(prefix + "dimensions", rotary.dimensions, Effect::on_values);
  f(prefix + "scaling", rotary.scaling, Effect::on_values);
  f(prefix + "factor", rotary.factor, Effect::on_values);
}

template <class Options, class F>
void for_each_attention_option(const std::string& prefix, Options& attention, F& f) {
  f(prefix + "key_value_heads", attention.key_value_heads, Effect::none);
  f(prefix + "head_size", attention.head_size, Effect::none);
  f(prefix + "bias", attention.bias, Effect::on_values);
  f.group(prefix + "rotary", attention.rotary,
          [&](auto& rotary) { for_each_rotary_option(prefix + "rotary.", rotary, f); });
  f(prefix + "alibi", attention.alibi, Effect::on_values);
  f.group(prefix + "relative_bias", attention.relative_bias, [&](auto& buckets) {
    f(prefix + "relative_bias.buckets", buckets.buckets, Effect::on_values);
    f(prefix + "relative_bias.max_distance", buckets.max_distance, Effect::on_values);
    f(prefix + "relative_bias.bidirectional", buckets.bidirectional, Effect::on_values);
  });
  f(prefix + "window", attention.window, Effect::on_values);
  f(prefix + "qk_norm", attention.qk_norm, Effect::on_values);
  f(prefix + "softcap", attention.softcap, Effect::on_values);
  f(prefix + "sinks", attention.sinks, Effect::on_values);
  f(prefix + "dropout", attention.dropout, Effect::none);
}

template <class Options, class F>
void for_each_block_option(const std::string& prefix, Options& block, F& f) {
  for_each_attention_option(prefix + "attention.", block.attention, f);
  f(prefix + "norm", block.norm, Effect::on_values);
  f(prefix + "norm_place", block.norm_place, Effect::on_values);
  f(prefix + "mlp", block.mlp, Effect::on_values);
  f(prefix + "d_hidden", block.d_hidden, Effect::none);
  f(prefix + "mlp_bias", block.mlp_bias, Effect::on_values);
  f(prefix + "dropout", block.dropout, Effect::none);
}

/// What Gpt and Encoder have in common. `context` limits the length of learned positions, which their table
/// shows; a model with other positions may be given longer sequences than it was trained on.
template <class Config, class F>
void for_each_common_option(Config& config, F& f) {
  f("vocabulary", config.vocabulary, Effect::on_values);
  f("context", config.context, Effect::none);
  f("d_model", config.d_model, Effect::on_values);
  f("heads", config.heads, Effect::on_values);
  f("layers", config.layers, Effect::on_values);
  f("positions", config.positions, Effect::on_values);
  for_each_block_option("block.", config.block, f);
}

/// For a GptConfig, const or not.
template <class Config, class F>
void for_each_gpt_option(Config& config, F& f) {
  for_each_common_option(config, f);
  f("tied_output", config.tied_output, Effect::on_values);
  f("recompute", config.recompute, Effect::none);
}

/// For an EncoderConfig, const or not.
template <class Config, class F>
void for_each_encoder_option(Config& config, F& f) {
  for_each_common_option(config, f);
  f("padding_id", config.padding_id, Effect::none);
}

/// Names every option of a model as one of its settings: "config.positions".
void visit_options(const GptConfig& config, Visitor& v);
void visit_options(const EncoderConfig& config, Visitor& v);

/// The options that `visit_options` has named. Throws: ValueError for one that is absent or has no value of
/// its kind.
GptConfig read_gpt_options(const Settings& settings);

}  // namespace fovea::detail
