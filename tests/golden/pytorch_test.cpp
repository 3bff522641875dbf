// Values and gradients against PyTorch's, from pytorch.json, which pytorch.py writes.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/encoder.h"
#include "fovea/layers/gpt.h"
#include "fovea/layers/multi_head_attention.h"
#include "fovea/layers/state.h"
#include "fovea/layers/transformer_block.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

const Json& golden(const std::string& name) {
  static const Json all = Json::parse(std::ifstream(FOVEA_SOURCE_DIR "/tests/golden/pytorch.json"));
  return all.at("cases").at(name);
}

Shape shape_of(const Json& json) {
  Shape shape;
  for (const std::int64_t size : json.at("shape")) shape.push_back(size);
  return shape;
}

Tensor tensor_of(const Json& json, Dtype dtype) {
  return from_values(json.at("values").get<std::vector<double>>(), shape_of(json), dtype);
}

Indices indices_of(const Json& json) {
  return Indices(shape_of(json), json.at("values").get<std::vector<std::int64_t>>());
}

// No mask where there are no lengths.
Mask padding_of(const Json& json) {
  if (!json.contains("lengths")) return {};
  const auto lengths = json.at("lengths").get<std::vector<std::int64_t>>();
  return Mask::lengths(Indices({static_cast<std::int64_t>(lengths.size())}, lengths));
}

void check_close_to(const Json& expected, const Tensor& found, const std::string& name) {
  const Tensor value = tensor_of(expected, found.dtype());
  double largest = 1;
  for (const double x : value.to_vector()) largest = std::max(largest, std::abs(x));
  INFO(name);
  check_close(found, value, (found.dtype() == f64 ? 1e-10 : 1e-5) * largest);
}

// The layer with PyTorch's weights, run on its inputs, in both dtypes.
template <class L, class Run>
void check(const std::string& name, const L& made, const Run& run) {
  const Json& json = golden(name);
  for (const Dtype dtype : {f64, f32}) {
    INFO(name << ", " << name_of(dtype));
    L layer = to(made, dtype);
    State weights;
    for (const auto& [parameter, value] : json.at("parameters").items()) {
      weights.tensors.push_back({parameter, tensor_of(value, dtype)});
    }
    REQUIRE(load(layer, weights).complete());
    std::vector<NamedTensor> leaves = named_parameters(layer);
    const auto input = [&](const std::string& of) {
      leaves.push_back({of, tensor_of(json.at("inputs").at(of), dtype).set_requires_grad()});
      return leaves.back().tensor;
    };
    const Tensor y = run(layer, input);
    check_close_to(json.at("output"), y, "output");
    backward(y, {.gradient = tensor_of(json.at("cotangent"), dtype)});
    REQUIRE(leaves.size() == json.at("gradients").size());
    for (const auto& [leaf, tensor] : leaves) {
      check_close_to(json.at("gradients").at(leaf), tensor.grad(), "gradient of " + leaf);
    }
  }
}

std::int64_t size(const Json& config, const char* name) { return config.at(name).get<std::int64_t>(); }

NormPlace norm_place(const Json& config) {
  return config.at("norm_place") == "pre" ? NormPlace::pre : NormPlace::post;
}

TEST_CASE("PyTorch: nn.MultiheadAttention", "[golden]") {
  Rng rng(1);
  const auto make = [&](const std::string& name) {
    const Json& config = golden(name).at("config");
    return MultiHeadAttention(size(config, "d_model"), size(config, "heads"), rng);
  };
  const std::string self = "self-attention, causal", cross = "cross-attention, padded";
  check(self, make(self), [](const auto& layer, const auto& input) { return layer(input("x")); });
  check(cross, make(cross), [&](const auto& layer, const auto& input) {
    const Tensor x = input("x");
    return layer(x, input("context"), padding_of(golden(cross)));
  });
}

TEST_CASE("PyTorch: nn.TransformerEncoderLayer", "[golden]") {
  const std::string name = GENERATE("block, pre-norm, gelu", "block, pre-norm, relu",
                                    "block, post-norm, gelu", "block, post-norm, relu");
  const Json& config = golden(name).at("config");
  const bool relu = config.at("mlp") == "relu";
  Rng rng(1);
  const TransformerBlock block(size(config, "d_model"), size(config, "heads"), rng,
                               {.norm_place = norm_place(config),
                                .mlp = relu ? MlpKind::relu : MlpKind::gelu,
                                .d_hidden = size(config, "d_hidden")});
  check(name, block, [](const auto& layer, const auto& input) { return layer(input("x")); });
}

TEST_CASE("PyTorch: GPT-2 written in plain ops", "[golden]") {
  const Json& config = golden("gpt").at("config");
  const bool recompute = GENERATE(false, true);
  Rng rng(1);
  const Gpt model({.vocabulary = size(config, "vocabulary"),
                   .context = size(config, "context"),
                   .d_model = size(config, "d_model"),
                   .heads = size(config, "heads"),
                   .layers = size(config, "layers"),
                   .recompute = recompute},
                  rng);
  const Indices ids = indices_of(golden("gpt").at("inputs").at("ids"));
  check("gpt", model, [&](const Gpt& layer, const auto&) { return layer.logits(ids); });
}

TEST_CASE("PyTorch: nn.TransformerEncoder", "[golden]") {
  const std::string name = GENERATE("encoder, pre-norm, padded", "encoder, post-norm, padded");
  const Json& config = golden(name).at("config");
  Rng rng(1);
  const Encoder model({.vocabulary = size(config, "vocabulary"),
                       .context = size(config, "context"),
                       .d_model = size(config, "d_model"),
                       .heads = size(config, "heads"),
                       .layers = size(config, "layers"),
                       .block = {.norm_place = norm_place(config), .d_hidden = size(config, "d_hidden")}},
                      rng);
  const Indices ids = indices_of(golden(name).at("inputs").at("ids"));
  check(name, model, [&](const Encoder& layer, const auto&) { return layer(ids, padding_of(golden(name))); });
}

}  // namespace
}  // namespace fovea
