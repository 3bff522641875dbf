#include "fovea/train/loop/checkpoints.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/base/fail.h"
#include "train/loop/checkpoint_folder.h"

namespace fovea {
namespace {

constexpr std::string_view model_prefix = "model.", average_prefix = "average.", average_suffix = ".average";

// The name without the prefix; nothing if it does not begin with it.
std::optional<std::string> without(std::string_view prefix, const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
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
  if (options.average) {
    for (auto& [name, tensor] : state.tensors) {
      if (const auto found = averages.find(name); found != averages.end()) tensor = found->second;
    }
  }
  return state;
}

}  // namespace fovea
