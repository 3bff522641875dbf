#include "cli/run.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/loop/checkpoints.h"
#include "fovea/train/tasks/task.h"
#include "fovea/train/tokenizers/tokenizer.h"

namespace fovea::cli {
namespace {

using detail::in_quotes;
using detail::whole_number;

std::int64_t number_of(const SafetensorsFile& file, const std::string& key,
                       const std::filesystem::path& path) {
  const auto entry = file.metadata.find(key);
  const auto number = entry == file.metadata.end() ? std::nullopt : whole_number(entry->second);
  if (!number) {
    throw FileError(fmt::format("{} is not a checkpoint of fovea train: its metadata have no number \"{}\"",
                                path.string(), key));
  }
  return *number;
}

Language language_of_task(const std::string& name) {
  const std::shared_ptr<const Task> task = make_task(name);
  const auto encode = [task](std::string_view text) {
    std::vector<std::int64_t> ids = task->vocabulary().encode(text);
    if (task->start()) ids.insert(ids.begin(), *task->start());
    return ids;
  };
  const auto decode = [task](std::int64_t id) {
    const std::string& word = task->vocabulary().word(id);
    return word == "." ? word : " " + word;  // as Vocabulary::encode splits a text
  };
  return {encode, decode, task->stop()};
}

// A model of lines has seen each line between two newlines, so a prompt begins with one. An empty prompt to a
// model of a text does so too, because some token must come first.
Language language_of_text(const LoadedRun& run, const std::string& description) {
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_from_json(description);
  const std::optional<std::int64_t> newline = tokenizer->find("\n");
  const bool lines = run.settings.lines;
  const auto encode = [=](std::string_view text) {
    std::vector<std::int64_t> ids = tokenizer->encode(text);
    if (newline && (lines || ids.empty())) ids.insert(ids.begin(), *newline);
    return ids;
  };
  const auto decode = [=](std::int64_t id) { return lines && id == newline ? "" : tokenizer->token(id); };
  return {encode, decode, lines ? newline : std::nullopt};
}

// A run on a token file has no tokenizer: its texts are ids, separated by spaces.
Language language_of_ids() {
  const auto encode = [](std::string_view text) {
    std::vector<std::int64_t> ids;
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      const std::optional<std::int64_t> id = whole_number(word);
      if (!id) {
        throw ValueError(
            fmt::format("\"{}\" is not a token id: this run has no tokenizer, so its prompts are ids", word));
      }
      ids.push_back(*id);
    }
    return ids;
  };
  return {encode, [](std::int64_t id) { return fmt::format(" {}", id); }, std::nullopt};
}

}  // namespace

void load_weights(Model& model, const SafetensorsFile& file, const std::filesystem::path& checkpoint) {
  try {
    load_model(model, file, {.average = true});
  } catch (const LoadError& error) {
    const LoadReport& report = error.report;
    if (!report.settings.empty()) {
      const auto& [name, expected, found] = report.settings.front();
      throw FileError(
          fmt::format("the model of {} is not the one that the settings describe: {} is {} there, and {} "
                      "in the settings",
                      in_quotes(checkpoint.string()), name, in_quotes(found), in_quotes(expected)));
    }
    throw FileError(
        fmt::format("the model of {} is not the one that the settings of the run describe: {} tensors are "
                    "missing in it, {} are "
                    "too many, and {} have other shapes",
                    in_quotes(checkpoint.string()), report.missing.size(), report.unexpected.size(),
                    report.misshaped.size()));
  }
}

LoadedRun load_run(const std::filesystem::path& folder, bool best) {
  Settings settings = settings_of_run(folder);
  const auto checkpoint = best ? best_checkpoint(folder) : latest_checkpoint(folder);
  if (!checkpoint) {
    throw FileError(fmt::format("the run {} has no {}checkpoint", folder.string(), best ? "best " : ""));
  }
  const SafetensorsFile file = load_safetensors(*checkpoint);
  const std::int64_t context = number_of(file, "context", *checkpoint);
  const std::int64_t vocabulary = number_of(file, "vocabulary", *checkpoint);
  check_model_sizes(settings.recipe, vocabulary, context, *checkpoint);
  Rng rng(settings.seed);
  Model model(settings.recipe, vocabulary, context, rng);
  load_weights(model, file, *checkpoint);
  return {std::move(settings), *checkpoint, file.metadata, std::move(model), context};
}

Language language_of(const LoadedRun& run) {
  if (run.settings.text.empty()) return language_of_task(run.settings.task);
  const auto tokenizer = run.metadata.find("tokenizer");
  return tokenizer == run.metadata.end() ? language_of_ids() : language_of_text(run, tokenizer->second);
}

}  // namespace fovea::cli
