#include "fovea/train/loop/checkpoints.h"

#include <fstream>

#include "fovea/layers/gpt.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

void touch(const std::filesystem::path& path) { std::ofstream(path) << "x"; }

TEST_CASE("latest_checkpoint: the highest step in a file name, other files ignored", "[trainer]") {
  const TemporaryFolder folder;
  const std::filesystem::path checkpoints = folder / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  for (const char* name :
       {"best.safetensors", "step-.safetensors", "step-12.safetensors", "step-99999999.safetensors.tmp",
        "step-0000000x.safetensors", ".fovea-0123456789abcdef.tmp"})
    touch(checkpoints / name);
  CHECK_FALSE(latest_checkpoint(folder.path()));
  touch(checkpoints / "step-00000200.safetensors");
  touch(checkpoints / "step-00000030.safetensors");
  CHECK(latest_checkpoint(folder.path()) == checkpoints / "step-00000200.safetensors");
  touch(checkpoints / "step-123456789.safetensors");
  CHECK(latest_checkpoint(folder.path()) == checkpoints / "step-123456789.safetensors");
}

TEST_CASE("load_model: loads the model's part of a checkpoint, ties included", "[trainer]") {
  Rng rng(1);
  const GptConfig config{.vocabulary = 7, .context = 3, .d_model = 4, .heads = 2, .layers = 1};
  const Gpt model(config, rng);
  SafetensorsFile file;
  for (const auto& [name, tensor] : state(model).tensors) {
    file.state.tensors.push_back({"model." + name, tensor});
    if (name == "token_embedding.table")
      file.state.tensors.push_back({"average." + name + ".average", 2 * tensor});
  }
  for (const auto& [name, original] : state(model).aliases)
    file.state.aliases.push_back({"model." + name, "model." + original});
  file.state.tensors.push_back({"optimizer.token_embedding.table.m", zeros({2})});

  Gpt loaded(config, rng);
  const std::vector<double> table = model.token_embedding.table.to_vector();
  CHECK(loaded.token_embedding.table.to_vector() != table);
  load_model(loaded, file);
  CHECK(loaded.token_embedding.table.to_vector() == table);
  load_model(loaded, file, {.average = true});
  CHECK(loaded.token_embedding.table.to_vector() == (2 * model.token_embedding.table).to_vector());
  CHECK(loaded.norm->index() == model.norm->index());

  const SafetensorsFile alone{.state = state(model)};
  CHECK_THROWS_WITH(load_model(loaded, alone), ContainsSubstring("to load a file that holds a model alone"));
}

}  // namespace
}  // namespace fovea
