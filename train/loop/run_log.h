#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "fovea/train/loop/trainer.h"
#include "train/io/append_file.h"

namespace fovea::detail {

/// The logs of a run: log.jsonl, whose lines hold no times, so that a resumed run and one that was never
/// stopped write the same bytes; and events for TensorBoard, which hold times, in files of the same size.
class RunLog {
 public:
  /// The sizes of the logs in bytes, by file name.
  using Sizes = std::map<std::string, std::uint64_t>;

  /// Opens the logs in a folder and cuts each to the given size; a log without one starts empty.
  /// Throws: FileError, before any log has been cut.
  RunLog(const std::filesystem::path& folder, const Sizes& sizes);

  /// Whether a folder has any of the logs.
  static bool exists(const std::filesystem::path& folder);

  /// `total_tokens`: the targets learned from so far.
  void step(const StepReport& report, std::int64_t total_tokens);
  void evaluation(const EvaluationReport& report);

  void flush();
  /// Flushes to the disk.
  void sync();
  Sizes sizes() const;

 private:
  using Clock = std::chrono::steady_clock;

  AppendFile jsonl_, events_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fovea::detail
