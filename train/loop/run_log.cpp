#include "train/loop/run_log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "train/loop/tensorboard.h"

namespace fovea::detail {
namespace {

// TensorBoard reads every file that has "tfevents" in its name.
constexpr const char* jsonl_name = "log.jsonl";
constexpr const char* csv_name = "log.csv";
constexpr const char* times_name = "times.csv";
constexpr const char* events_name = "events.out.tfevents.fovea";

// Whoever watches the files waits no longer.
constexpr auto flush_interval = std::chrono::seconds(1);

AppendFile open_log(const std::filesystem::path& folder, const RunLog::Sizes& sizes, const char* name) {
  const auto found = sizes.find(name);
  return {folder / name, found == sizes.end() ? 0 : found->second};
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string json_line(const nlohmann::ordered_json& record) {
  // A name that is not UTF-8 is no reason to stop.
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// RFC 4180: in quotes, which are doubled inside.
std::string csv_text(const std::string& text) {
  if (text.empty()) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder, const Sizes& sizes)
    : jsonl_(open_log(folder, sizes, jsonl_name)),
      csv_(open_log(folder, sizes, csv_name)),
      times_(open_log(folder, sizes, times_name)),
      events_(open_log(folder, sizes, events_name)) {
  for (AppendFile* file : {&jsonl_, &csv_, &times_, &events_}) file->cut();
  if (csv_.size() == 0) csv_.append("step,loss,learning_rate,gradient_norm,tokens,validation_loss,skipped\n");
  if (times_.size() == 0) times_.append("step,seconds,tokens_per_second\n");
  if (events_.size() == 0) events_.append(tensorboard_beginning(now()));
}

bool RunLog::exists(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::array{jsonl_name, csv_name, times_name, events_name},
                             [&](const char* name) { return std::filesystem::exists(folder / name); });
}

void RunLog::step(const StepReport& report, std::int64_t tokens, double seconds, double duration) {
  nlohmann::ordered_json record{{"step", report.step},
                                {"loss", report.loss},
                                {"learning_rate", report.learning_rate},
                                {"gradient_norm", report.gradient_norm},
                                {"tokens", tokens}};
  if (!report.skipped.empty()) record["skipped"] = report.skipped;
  jsonl_.append(json_line(record));
  csv_.append(fmt::format("{},{},{},{},{},,{}\n", report.step, report.loss, report.learning_rate,
                          report.gradient_norm, tokens, csv_text(report.skipped)));

  const double speed = static_cast<double>(report.tokens) / std::max(duration, 1e-9);
  // Of one width, so that no time has an influence on the size.
  times_.append(fmt::format("{},{:14.3f},{:14.1f}\n", report.step, seconds, speed));
  const Scalar scalars[] = {{"loss", report.loss},
                            {"learning_rate", report.learning_rate},
                            {"gradient_norm", report.gradient_norm},
                            {"tokens_per_second", speed}};
  events_.append(tensorboard_record(now(), report.step, scalars));

  if (Clock::now() - flushed_ >= flush_interval) flush();
}

void RunLog::evaluation(const EvaluationReport& report) {
  jsonl_.append(json_line({{"step", report.step},
                           {"validation_loss", report.loss},
                           {"validation_tokens", report.tokens},
                           {"best", report.best}}));
  csv_.append(fmt::format("{},,,,,{},\n", report.step, report.loss));
  const Scalar scalars[] = {{"validation_loss", report.loss}};
  events_.append(tensorboard_record(now(), report.step, scalars));
}

void RunLog::flush() {
  for (AppendFile* file : {&jsonl_, &csv_, &times_, &events_}) file->flush();
  flushed_ = Clock::now();
}

void RunLog::sync() {
  for (AppendFile* file : {&jsonl_, &csv_, &times_, &events_}) file->sync();
  flushed_ = Clock::now();
}

RunLog::Sizes RunLog::sizes() const {
  return {{jsonl_name, jsonl_.size()},
          {csv_name, csv_.size()},
          {times_name, times_.size()},
          {events_name, events_.size()}};
}

}  // namespace fovea::detail
