#include "train/loop/model_sizes.h"

#include <functional>

#include "fovea/autograd/base/error.h"
#include "fovea/layers/gpt.h"
#include "fovea/layers/one_head_model.h"
#include "fovea/layers/state.h"
#include "tests/support/catch.h"

using namespace fovea;
using namespace fovea::detail;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 58;

template <Layer L>
Shapes shapes_of(const L& model) {
  Shapes shapes;
  for (const auto& [name, tensor] : state(model).tensors) shapes.emplace(name, tensor.shape());
  return shapes;
}

GptConfig small() {
  return {
      .vocabulary = 11, .context = 5, .d_model = 6, .heads = 2, .layers = 3, .block = {.mlp = MlpKind::gelu}};
}

}  // namespace

TEST_CASE("check_gpt_sizes: the tensors of every kind of Gpt fit its configuration", "[train]") {
  Rng rng(1);
  for (const Positions positions :
       {Positions::learned, Positions::rotary, Positions::relative, Positions::none}) {
    for (const MlpKind mlp : {MlpKind::gelu, MlpKind::swiglu, MlpKind::none}) {
      GptConfig config = small();
      config.positions = positions;
      config.d_model = 12;
      config.block.mlp = mlp;
      config.block.attention.key_value_heads = 1;
      CHECK_NOTHROW(check_gpt_sizes("file", config, shapes_of(Gpt(config, rng))));
      config.block.attention.head_size = 4;
      config.block.d_hidden = 7;
      CHECK_NOTHROW(check_gpt_sizes("file", config, shapes_of(Gpt(config, rng))));
    }
  }
}

TEST_CASE("check_gpt_sizes: sizes of which the file holds nothing are refused, not allocated", "[train]") {
  Rng rng(1);
  const Shapes shapes = shapes_of(Gpt(small(), rng));
  const auto refuses = [&](const std::function<void(GptConfig&)>& change, const std::string& text) {
    GptConfig config = small();
    change(config);
    CAPTURE(text);
    CHECK_THROWS_AS(check_gpt_sizes("file", config, shapes), FileError);
    CHECK_THROWS_WITH(check_gpt_sizes("file", config, shapes),
                      ContainsSubstring("file ") && ContainsSubstring(text));
  };
  refuses([](GptConfig& c) { c.context = huge; },
          "whose context is 288230376151711744: it must be from 1 to");
  refuses([](GptConfig& c) { c.context = 0; }, "context is 0");
  refuses([](GptConfig& c) { c.context = 30'000'000; }, "'position_embedding.table' of shape (5, 6)");
  refuses([](GptConfig& c) { c.vocabulary = 30'000'000; }, "is (30000000, 6)");
  refuses([](GptConfig& c) { c.vocabulary = -1; }, "vocabulary is -1");
  refuses([](GptConfig& c) { c.d_model = huge; }, "d_model is");
  refuses([](GptConfig& c) { c.d_model = 8; }, "'token_embedding.table' of shape (11, 6)");
  refuses([](GptConfig& c) { c.heads = 0; }, "number of heads is 0");
  refuses([](GptConfig& c) { c.heads = huge; }, "number of heads is");
  refuses([](GptConfig& c) { c.layers = huge; }, "number of layers is");
  refuses([](GptConfig& c) { c.layers = 1'000'000; }, "no tensor 'blocks.3.attention.Wq'");
  refuses([](GptConfig& c) { c.block.d_hidden = 1'000'000'000; }, "is (6, 1000000000)");
  refuses([](GptConfig& c) { c.block.mlp = MlpKind::swiglu; }, "no tensor 'blocks.0.mlp.W1'");
  refuses([](GptConfig& c) { c.block.attention.head_size = 1'000'000'000; }, "is (6, 2000000000)");
  refuses([](GptConfig& c) { c.block.attention.key_value_heads = 1'000'000; }, "'blocks.0.attention.Wk'");
  refuses([](GptConfig& c) { c.block.attention.relative_bias.emplace(); },
          "no tensor 'blocks.0.attention.relative");
}

TEST_CASE("check_one_head_sizes: the same for the model of one head", "[train]") {
  Rng rng(1);
  const Shapes shapes = shapes_of(OneHeadModel(11, 6, rng));
  CHECK_NOTHROW(check_one_head_sizes("file", 11, 6, shapes));
  CHECK_THROWS_WITH(check_one_head_sizes("file", 30'000'000, 6, shapes), ContainsSubstring("(30000000, 6)"));
  CHECK_THROWS_AS(check_one_head_sizes("file", huge, 6, shapes), FileError);
  CHECK_THROWS_AS(check_one_head_sizes("file", 11, -6, shapes), FileError);
}

TEST_CASE("model_shapes: the tensors of a checkpoint's model, without those of its optimizer", "[train]") {
  SafetensorsHeader header;
  for (const char* name : {"model.W", "optimizer.W.m"}) {
    SafetensorsEntry& entry = header.entries.emplace_back();
    entry.name = name;
    entry.shape = {2, 3};
  }
  CHECK(model_shapes(header) == Shapes{{"W", {2, 3}}});
}
