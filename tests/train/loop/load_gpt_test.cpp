#include <fstream>
#include <functional>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/layers/encoder.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/checkpoints.h"
#include "fovea/train/loop/run.h"
#include "fovea/train/optimizers/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

GptConfig base() { return {.vocabulary = 11, .context = 7, .d_model = 12, .heads = 2, .layers = 3}; }
const Indices ids({{3, 1, 4, 1, 5}, {9, 2, 6, 5, 3}});

struct Change {
  const char* option;
  std::function<void(GptConfig&)> make;
  bool same_tensors = false;  // whether the changed model has tensors of the same names and shapes
};

// Every option of a Gpt, with another value than in `base`.
std::vector<Change> changes() {
  using C = GptConfig;
  constexpr bool same_tensors = true;
  const auto rotary = [](C& c) -> RotaryOptions& {
    c.positions = Positions::rotary;
    return c.block.attention.rotary.emplace();
  };
  const auto relative = [](C& c) -> RelativeBuckets& {
    c.positions = Positions::relative;
    return c.block.attention.relative_bias.emplace();
  };
  return {
      {"vocabulary", [](C& c) { c.vocabulary = 13; }},
      {"context", [](C& c) { c.context = 17; }},
      {"d_model", [](C& c) { c.d_model = 10; }},
      {"heads", [](C& c) { c.heads = 3; }, same_tensors},
      {"layers", [](C& c) { c.layers = 2; }},
      {"positions", [](C& c) { c.positions = Positions::sine_cosine; }},
      {"tied_output", [](C& c) { c.tied_output = false; }},
      {"recompute", [](C& c) { c.recompute = true; }},
      {"block.norm", [](C& c) { c.block.norm = NormKind::rms; }},
      {"block.norm_place", [](C& c) { c.block.norm_place = NormPlace::post; }},
      {"block.mlp", [](C& c) { c.block.mlp = MlpKind::relu; }, same_tensors},
      {"block.d_hidden", [](C& c) { c.block.d_hidden = 19; }},
      {"block.mlp_bias", [](C& c) { c.block.mlp_bias = false; }},
      {"block.dropout", [](C& c) { c.block.dropout = 0.3; }},
      {"block.attention.key_value_heads", [](C& c) { c.block.attention.key_value_heads = 1; }},
      {"block.attention.head_size", [](C& c) { c.block.attention.head_size = 4; }},
      {"block.attention.bias", [](C& c) { c.block.attention.bias = false; }},
      {"block.attention.window", [](C& c) { c.block.attention.window = 3; }, same_tensors},
      {"block.attention.qk_norm", [](C& c) { c.block.attention.qk_norm = true; }},
      {"block.attention.softcap", [](C& c) { c.block.attention.softcap = 0.1; }, same_tensors},
      {"block.attention.sinks", [](C& c) { c.block.attention.sinks = true; }},
      {"block.attention.dropout", [](C& c) { c.block.attention.dropout = 0.7; }},
      {"block.attention.alibi", [](C& c) { c.positions = Positions::alibi; }},
      {"block.attention.rotary", [=](C& c) { rotary(c); }},
      {"block.attention.rotary.layout", [=](C& c) { rotary(c).layout = RotaryLayout::adjacent; }},
      {"block.attention.rotary.base", [=](C& c) { rotary(c).base = 1234.5; }},
      {"block.attention.rotary.offset", [=](C& c) { rotary(c).offset = 2; }},
      {"block.attention.rotary.dimensions", [=](C& c) { rotary(c).dimensions = 4; }},
      {"block.attention.rotary.scaling", [=](C& c) { rotary(c).scaling = RotaryScaling::ntk; }},
      {"block.attention.rotary.factor", [=](C& c) { rotary(c).factor = 1.7; }},
      {"block.attention.relative_bias", [=](C& c) { relative(c); }},
      {"block.attention.relative_bias.buckets", [=](C& c) { relative(c).buckets = 16; }},
      {"block.attention.relative_bias.max_distance", [=](C& c) { relative(c).max_distance = 29; }},
      {"block.attention.relative_bias.bidirectional", [=](C& c) { relative(c).bidirectional = true; }},
  };
}

std::vector<double> logits_of(const Gpt& gpt) {
  const EvalMode evaluation;
  return gpt(ids).to_vector();
}

TEST_CASE("load_gpt: makes the model that was saved, whatever its options", "[trainer]") {
  const TemporaryFolder folder;
  for (const Change& change : changes()) {
    CAPTURE(change.option);
    Rng rng(3);
    GptConfig config = base();
    change.make(config);
    const Gpt saved(config, rng);
    save_safetensors(folder / "gpt.safetensors", state(saved));
    const Gpt loaded = load_gpt(folder / "gpt.safetensors");
    CHECK(logits_of(loaded) == logits_of(saved));
    CHECK(state(loaded).settings == state(saved).settings);
    const std::string name = std::string("config.") + change.option;
    const Settings before = state(Gpt(base(), rng)).settings;
    CHECK((!before.contains(name) || before.at(name) != state(saved).settings.at(name)));
  }
}

TEST_CASE("load: a model with the same tensors and other options is refused, and the option named",
          "[trainer]") {
  for (const Change& change : changes()) {
    if (!change.same_tensors) continue;
    CAPTURE(change.option);
    Rng rng(5);
    GptConfig config = base();
    change.make(config);
    Gpt other(config, rng);
    const std::vector<double> before = logits_of(other);
    const State saved = state(Gpt(base(), rng));
    CHECK_THROWS_WITH(load(other, saved), ContainsSubstring(std::string("config.") + change.option + " is "));
    CHECK(logits_of(other) == before);
    CHECK_NOTHROW(load(other, saved, {.partial = true}));
  }
  // What only training sees may differ, and so may a file without settings.
  Rng rng(7);
  GptConfig config = base();
  config.recompute = true;
  config.block.dropout = 0.2;
  Gpt other(config, rng);
  State saved = state(Gpt(base(), rng));
  CHECK_NOTHROW(load(other, saved));
  config.block.attention.window = 2;
  Gpt windowed(config, rng);
  CHECK_THROWS_AS(load(windowed, saved), LoadError);
  saved.settings.clear();
  CHECK_NOTHROW(load(windowed, saved));
}

TEST_CASE("load: an Encoder with other options is refused", "[trainer]") {
  Rng rng(11);
  const EncoderConfig config{.vocabulary = 11, .context = 7, .d_model = 12, .heads = 2, .layers = 1};
  EncoderConfig other = config;
  other.block.mlp = MlpKind::silu;
  Encoder encoder(other, rng);
  CHECK_THROWS_WITH(load(encoder, state(Encoder(config, rng))),
                    ContainsSubstring("config.block.mlp is silu in the layer and gelu in the state"));
}

TEST_CASE("load_gpt: from the folder of a run and from its checkpoints", "[trainer]") {
  const TemporaryFolder folder;
  Rng rng(13);
  GptConfig config = base();
  config.positions = Positions::rotary;
  const Gpt model(config, rng);
  AdamW optimizer(named_parameters(model));
  const BatchSource source = [](std::int64_t, Rng&) { return Batch{ids, ids}; };
  Trainer trainer(model, optimizer, source, {.steps = 2, .ema_decay = 0.5});
  {
    const Run run(folder / "run", trainer);
    trainer.run();
  }
  CHECK(logits_of(load_gpt(folder / "run")) == logits_of(model));
  const auto checkpoint = latest_checkpoint(folder / "run");
  REQUIRE(checkpoint);
  CHECK(logits_of(load_gpt(*checkpoint)) == logits_of(model));
  CHECK(logits_of(load_gpt(*checkpoint, {.average = true})) != logits_of(model));

  config.positions = Positions::none;
  Gpt other(config, rng);
  CHECK_THROWS_WITH(load_model(other, *checkpoint),
                    ContainsSubstring("config.positions is none in the layer and rotary in the state"));
}

TEST_CASE("load_gpt: a file that lies about its model is refused before the model is made", "[trainer]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "gpt.safetensors";
  Rng rng(17);
  GptConfig config = base();
  config.positions = Positions::relative;
  config.block.d_hidden = 5;
  const State honest = state(Gpt(config, rng));
  const auto load_with = [&](const char* option, const std::string& value) {
    State lying = honest;
    lying.settings.at(std::string("config.") + option) = value;
    save_safetensors(path, lying);
    return load_gpt(path);
  };
  for (const char* option :
       {"vocabulary", "d_model", "heads", "layers", "block.d_hidden", "block.attention.head_size",
        "block.attention.key_value_heads", "block.attention.relative_bias.buckets"}) {
    for (const char* value : {"288230376151711744", "4611686018427387904", "17", "0", "-3"}) {
      CAPTURE(option, value);
      CHECK_THROWS_AS(load_with(option, value), FileError);
    }
    CHECK_THROWS_WITH(load_with(option, "many"), ContainsSubstring("'many', which is no value of it"));
  }
  // No block can be made of an odd number of channels and 2 heads, but the embeddings could.
  CHECK_THROWS_WITH(load_with("d_model", "65537"),
                    ContainsSubstring("whose 65537 channels do not divide into 2 heads"));
  CHECK_THROWS_WITH(load_with("positions", "circular"), ContainsSubstring("'circular'"));

  State foreign = honest;
  foreign.settings.clear();
  save_safetensors(path, foreign);
  CHECK_THROWS_WITH(load_gpt(path), ContainsSubstring("does not say which Gpt it holds"));
  CHECK_THROWS_WITH(load_gpt(folder.path()), ContainsSubstring("has no checkpoint"));
  CHECK_THROWS_AS(load_gpt(folder / "none.safetensors"), FileError);
}

}  // namespace
}  // namespace fovea
