#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/settings.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/trainer.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {

/// What a run learns from.
struct Corpus {
  std::string description;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  BatchSource training;
  EvaluationSource validation;  ///< empty, if nothing is kept to evaluate on
  /// What checkpoints say of it: "vocabulary", "context", "tokenizer" (of a text) and "data", by which a run
  /// that is resumed tells whether its text is still the same.
  Metadata metadata;
};

/// Throws: FileError or ValueError for a text that can't be read, is too short or has what its tokenizer does
/// not know.
Corpus open_corpus(const Settings& settings);

/// Throws: ValueError if the metadata of a run's checkpoint tell of other data.
void check_same_data(const Corpus& corpus, const Metadata& checkpoint);

}  // namespace fovea::cli
