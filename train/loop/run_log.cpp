#include "train/loop/run_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "autograd/base/fail.h"
#include "train/loop/tensorboard.h"

namespace fovea::detail {
namespace {

constexpr const char* jsonl_name = "log.jsonl";
// TensorBoard reads every file that has "tfevents" in its name.
constexpr const char* events_name = "events.out.tfevents.fovea";

// Programs that follow the logs see each line after this time at the latest.
constexpr auto flush_interval = std::chrono::seconds(1);

LogEnd end_of(const RunLog::Ends& ends, const char* name) {
  const auto found = ends.find(name);
  return found == ends.end() ? LogEnd{} : found->second;
}

[[noreturn]] void refuse_bytes(const std::filesystem::path& path) {
  fail<FileError>(
      "[Run] '{}' does not have the bytes that it had when the checkpoint was saved: restore it, or remove "
      "it to "
      "begin it anew",
      path.string());
}

AppendFile open_lines(const std::filesystem::path& folder, const LogEnd& end) {
  AppendFile file(folder / jsonl_name, end.size);
  if (end.crc32 && file.size() == end.size && file.crc32() != *end.crc32) refuse_bytes(folder / jsonl_name);
  return file;
}

AppendFile open_events(const std::filesystem::path& folder, const LogEnd& end) {
  AppendFile file(folder / events_name, end.size);
  if (file.size() == 0) return file;
  const std::string bytes = read_file("Run", folder / events_name);
  if (!are_tensorboard_records(std::string_view(bytes).substr(0, file.size())))
    refuse_bytes(folder / events_name);
  return file;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string json_line(const nlohmann::ordered_json& record) {
  // Bytes that are not UTF-8, as in the name of a parameter, are replaced instead of thrown at.
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder, const Ends& ends)
    : jsonl_(open_lines(folder, end_of(ends, jsonl_name))),
      events_(open_events(folder, end_of(ends, events_name))) {
  jsonl_.cut();
  events_.cut();
  if (events_.size() == 0) events_.append(tensorboard_beginning(now()));
}

bool RunLog::exists(const std::filesystem::path& folder) {
  // A link that leads nowhere is something, too.
  const auto is_there = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::symlink_status(folder / name));
  };
  return is_there(jsonl_name) || is_there(events_name);
}

void RunLog::step(const StepReport& report, std::int64_t total_tokens) {
  nlohmann::ordered_json record{{"step", report.step},
                                {"loss", report.loss},
                                {"learning_rate", report.learning_rate},
                                {"gradient_norm", report.gradient_norm},
                                {"tokens", total_tokens}};
  if (!report.skipped.empty()) record["skipped"] = report.skipped;
  jsonl_.append(json_line(record));

  const Scalar scalars[] = {
      {"loss", report.loss},
      {"learning_rate", report.learning_rate},
      {"gradient_norm", report.gradient_norm},
      {"tokens_per_second", static_cast<double>(report.tokens) / std::max(report.seconds, 1e-9)}};
  events_.append(tensorboard_record(now(), report.step, scalars));

  if (Clock::now() - flushed_ >= flush_interval) flush();
}

void RunLog::evaluation(const EvaluationReport& report) {
  jsonl_.append(json_line({{"step", report.step},
                           {"validation_loss", report.loss},
                           {"validation_tokens", report.tokens},
                           {"best", report.best}}));
  const Scalar scalars[] = {{"validation_loss", report.loss}};
  events_.append(tensorboard_record(now(), report.step, scalars));
}

void RunLog::flush() {
  jsonl_.flush();
  events_.flush();
  flushed_ = Clock::now();
}

void RunLog::sync() {
  jsonl_.sync();
  events_.sync();
  flushed_ = Clock::now();
}

RunLog::Ends RunLog::ends() const {
  return {{jsonl_name, {jsonl_.size(), jsonl_.crc32()}}, {events_name, {events_.size()}}};
}

}  // namespace fovea::detail
