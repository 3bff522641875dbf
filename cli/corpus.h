#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/settings.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/trainer.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {

/// The data of a run.
struct Corpus {
  std::string description;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  BatchSource training;
  EvaluationSource validation;  ///< empty if nothing is held out
  /// What checkpoints record of the data: "vocabulary", "context", "tokenizer" (of a text) and "data", a
  /// fingerprint by which a resumed run recognises its text.
  Metadata metadata;
};

/// Opens the data. `run` is the metadata of a checkpoint of the run to go on with, or to begin from: its text
/// keeps the tokenizer. Throws: FileError or ValueError for a text that cannot be read, is too short or has
/// characters that its tokenizer does not know.
Corpus open_corpus(const Settings& settings, const Metadata& run = {});

/// Throws: FileError if the text of a run is not where it was, with the advice to name its new place.
void check_text_is_there(const Settings& settings);

/// Throws: ValueError if the metadata of a run's checkpoint differ from those of the corpus.
void check_same_data(const Corpus& corpus, const Metadata& checkpoint);

}  // namespace fovea::cli
