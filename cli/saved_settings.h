#pragma once

#include <cstdint>
#include <string>

#include "cli/settings.h"
#include "fovea/train/io/safetensors.h"

/// The settings that a run's checkpoints hold, by which a change of its file of settings is noticed.
namespace fovea::cli {

/// The metadata that keep the settings of a run which decide what it learns: not where its text is, nor which
/// checkpoints are kept.
Metadata saved_settings(const std::string& settings_text);

/// Throws: ValueError if a setting other than the number of steps is not what the checkpoint holds. A
/// checkpoint without settings is not compared.
void check_saved_settings(const Settings& settings, const std::string& settings_text,
                          const Metadata& checkpoint);

/// The number of steps that the checkpoint holds; that of the settings if it holds none.
std::int64_t saved_steps(const Settings& settings, const Metadata& checkpoint);

}  // namespace fovea::cli
