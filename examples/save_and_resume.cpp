// Training that is saved and resumed gives the same bits as training that never stopped.

#include <fmt/core.h>

#include <filesystem>

#include "fovea/fovea.h"

using namespace fovea;

// [checkpoint]
// Everything that is saved, visited like a layer: "model.W", "optimizer.W.m", ...
struct Checkpoint {
  const Linear& model;
  const AdamW& optimizer;

  static void visit(const Checkpoint& self, Visitor& v) {
    v("model", self.model);
    v("optimizer", self.optimizer);
  }
};
// [checkpoint]

void train(const Linear& model, AdamW& optimizer, std::int64_t begin, std::int64_t end) {
  for (std::int64_t step = begin; step < end; ++step) {
    Rng rng(static_cast<std::uint64_t>(step));  // the data depends on the step alone
    const Tensor x = randn({16, 5}, rng);
    backward(mean_squared_error(model(x), tanh(slice(x, -1, 0, 3))));
    optimizer.step();
    optimizer.zero_grad();
  }
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "fovea_save_and_resume";
  std::filesystem::create_directories(folder);
  const auto path = folder / "checkpoint.safetensors";

  Rng rng(1);
  const Linear model(5, 3, rng);
  AdamW optimizer(named_parameters(model));
  train(model, optimizer, 0, 20);
  // [save]
  save_safetensors(path, state(Checkpoint{model, optimizer}), {{"step", "20"}});
  // [save]
  train(model, optimizer, 20, 40);

  const Linear resumed(5, 3, rng);  // it starts from other weights
  AdamW its_optimizer(named_parameters(resumed));
  // [load]
  const SafetensorsFile file = load_safetensors(path);
  Checkpoint into{resumed, its_optimizer};
  load(into, file.state);
  const std::int64_t step = std::stoll(file.metadata.at("step"));
  // [load]
  train(resumed, its_optimizer, step, 40);

  // [info]
  for (const SafetensorsEntry& entry : read_safetensors_header(path).entries)
    fmt::print("{:20} {} {}\n", entry.name, entry.dtype, to_string(entry.shape));
  // [info]

  // [npz]
  save_npy(folder / "W.npy", model.W);                   // numpy.load("W.npy")
  save_npz(folder / "model.npz", state(model).tensors);  // numpy.load("model.npz")["W"]
  // [npz]
  std::filesystem::remove_all(folder);

  const bool same =
      resumed.W.to_vector() == model.W.to_vector() && resumed.b.to_vector() == model.b.to_vector();
  fmt::print("the resumed run has {} weights\n", same ? "the same" : "OTHER");
  return same ? 0 : 1;
}
