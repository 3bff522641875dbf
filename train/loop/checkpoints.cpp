#include "fovea/train/loop/checkpoints.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "layers/model_options.h"
#include "train/loop/checkpoint_folder.h"
#include "train/loop/model_sizes.h"

namespace fovea {
namespace {

constexpr std::string_view model_prefix = "model.", average_prefix = "average.", average_suffix = ".average";

// The name without the prefix; nothing if it does not begin with it.
std::optional<std::string> without(std::string_view prefix, const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

std::filesystem::path checkpoint_in(const std::filesystem::path& run_or_file) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_or_file, ignored)) return run_or_file;
  const auto checkpoint = latest_checkpoint(run_or_file);
  if (!checkpoint) {
    fail<FileError>("[load_gpt] the folder {} has no checkpoint: is it the folder of a run?",
                    detail::in_quotes(run_or_file.string()));
  }
  return *checkpoint;
}

// A checkpoint of a run has the model among other things, and a file of its own nothing else.
State gpt_state(SafetensorsFile&& file, const LoadModelOptions& options) {
  if (file.state.settings.contains("config.positions")) return std::move(file.state);
  return model_state(file, options);
}

}  // namespace

std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths = detail::numbered_checkpoints(folder);
  if (paths.empty()) return std::nullopt;
  return std::move(paths.back());
}

std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& folder) {
  std::filesystem::path path = detail::best_checkpoint_path(folder);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

State model_state(const SafetensorsFile& checkpoint, const LoadModelOptions& options) {
  std::map<std::string, Tensor> averages;
  State state;
  for (const auto& [name, tensor] : checkpoint.state.tensors) {
    if (const auto own = without(model_prefix, name)) state.tensors.push_back({*own, tensor});
    if (const auto own = without(average_prefix, name); own && own->ends_with(average_suffix))
      averages[own->substr(0, own->size() - average_suffix.size())] = tensor;
  }
  if (state.tensors.empty()) {
    fail<ValueError>(
        "[load_model] the file has no tensor named \"model.*\", so it is not a checkpoint of a Run: to "
        "load a file that holds a model alone, call load(model, load_safetensors(path).state)");
  }
  for (const auto& [name, original] : checkpoint.state.aliases) {
    const auto own = without(model_prefix, name), own_original = without(model_prefix, original);
    if (own && own_original) state.aliases.push_back({*own, *own_original});
  }
  for (const auto& [name, value] : checkpoint.state.settings) {
    if (const auto own = without(model_prefix, name)) state.settings[*own] = value;
  }
  if (options.average) {
    for (auto& [name, tensor] : state.tensors) {
      if (const auto found = averages.find(name); found != averages.end()) tensor = found->second;
    }
  }
  return state;
}

Gpt load_gpt(const std::filesystem::path& run_or_file, const LoadModelOptions& options) {
  const std::filesystem::path path = checkpoint_in(run_or_file);
  SafetensorsFile file = load_safetensors(path);
  const std::string shown = detail::in_quotes(path.string());
  if (file.state.settings.empty()) {
    fail<FileError>(
        "[load_gpt] {} does not say which Gpt it holds: make the model, and load it with load_model", shown);
  }
  const State state = gpt_state(std::move(file), options);
  const GptConfig config = detail::read_gpt_options(state.settings);
  detail::Shapes shapes;
  for (const NamedTensor& named : state.tensors) shapes.emplace(named.name, named.tensor.shape());
  detail::check_gpt_sizes("[load_gpt] " + shown, config, shapes);
  Rng rng(1);
  Gpt gpt(config, rng);
  load(gpt, state);
  return gpt;
}

}  // namespace fovea
