#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "fovea/train/loop/trainer.h"
#include "train/io/append_file.h"

namespace fovea::detail {

/// The logs of a run. `log.jsonl` and `log.csv` have what is a function of the run, and no time: those of a
/// resumed run are, byte by byte, those of a run that never stopped. Times are in `times.csv` and in
/// TensorBoard's events, whose sizes are functions of the run.
class RunLog {
 public:
  /// Bytes by the name of the file.
  using Sizes = std::map<std::string, std::uint64_t>;

  /// Opens the logs in a folder to go on from these sizes; those that have none begin anew.
  /// Throws: FileError, before any is cut.
  RunLog(const std::filesystem::path& folder, const Sizes& sizes);

  /// Whether a folder has any of the logs.
  static bool exists(const std::filesystem::path& folder);

  /// `tokens` have been learned from so far; the step ended after `seconds` in this process, of which it
  /// took `duration`.
  void step(const StepReport& report, std::int64_t tokens, double seconds, double duration);
  void evaluation(const EvaluationReport& report);

  void flush();
  /// Flushes to the disk.
  void sync();
  Sizes sizes() const;

 private:
  using Clock = std::chrono::steady_clock;

  AppendFile jsonl_, csv_, times_, events_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fovea::detail
