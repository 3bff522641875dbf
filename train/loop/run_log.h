#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "fovea/train/loop/trainer.h"
#include "train/io/append_file.h"

namespace fovea::detail {

/// The size of a log, and the checksum of its bytes. The events have none, since they hold times, which
/// differ between runs that are otherwise the same; each of their records has a checksum of its own.
struct LogEnd {
  std::uint64_t size = 0;
  std::optional<std::uint32_t> crc32 = {};
};

/// The logs of a run: log.jsonl, whose lines hold no times, so that a resumed run and one that was never
/// stopped write the same bytes; and events for TensorBoard, which hold times, in files of the same size.
class RunLog {
 public:
  /// Where the logs end, by file name.
  using Ends = std::map<std::string, LogEnd>;

  /// Opens the logs in a folder and cuts each at the given end; a log without one starts empty.
  /// Throws: FileError, before any log has been cut, if a log is shorter or has other bytes before its end.
  RunLog(const std::filesystem::path& folder, const Ends& ends);

  /// Whether a folder has any of the logs.
  static bool exists(const std::filesystem::path& folder);

  /// `total_tokens`: the targets learned from so far.
  void step(const StepReport& report, std::int64_t total_tokens);
  void evaluation(const EvaluationReport& report);

  void flush();
  /// Flushes to the disk.
  void sync();
  /// Where the logs end now.
  Ends ends() const;

 private:
  using Clock = std::chrono::steady_clock;

  AppendFile jsonl_, events_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fovea::detail
