#include "train/loop/run_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "train/loop/tensorboard.h"

namespace fovea::detail {
namespace {

constexpr const char* jsonl_name = "log.jsonl";
// TensorBoard reads every file that has "tfevents" in its name.
constexpr const char* events_name = "events.out.tfevents.fovea";

// Programs that follow the logs see each line after this time at the latest.
constexpr auto flush_interval = std::chrono::seconds(1);

AppendFile open_log(const std::filesystem::path& folder, const RunLog::Sizes& sizes, const char* name) {
  const auto found = sizes.find(name);
  return {folder / name, found == sizes.end() ? 0 : found->second};
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string json_line(const nlohmann::ordered_json& record) {
  // Bytes that are not UTF-8, as in the name of a parameter, are replaced instead of thrown at.
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder, const Sizes& sizes)
    : jsonl_(open_log(folder, sizes, jsonl_name)), events_(open_log(folder, sizes, events_name)) {
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

RunLog::Sizes RunLog::sizes() const { return {{jsonl_name, jsonl_.size()}, {events_name, events_.size()}}; }

}  // namespace fovea::detail
