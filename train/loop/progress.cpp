#include "fovea/train/loop/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "autograd/base/text.h"
#include "train/loop/terminal.h"

namespace fovea {
namespace {

using detail::with_commas;

std::string duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(std::FILE* out) : out_(out), rewrites_line_(detail::is_terminal(out)) {}

Progress::~Progress() { end_line(); }

void Progress::end_line() {
  if (line_open_) detail::put(out_, "\n");
  line_open_ = false;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::operator()(const StepReport& report) {
  ++steps_here_;
  tokens_ += report.tokens;
  if (report.skipped.empty()) {
    recent_tokens_ += report.tokens;
    recent_nats_ += report.loss * static_cast<double>(report.tokens);
  } else {
    ++skipped_;
  }
  if (is_due(report)) show(report);
}

void Progress::operator()(const EvaluationReport& report) {
  detail::put(out_,
              fmt::format("{}validation loss {:.4f} at step {}{}\n", rewrites_line_ ? "\r\x1b[K" : "",
                          report.loss, with_commas(report.step), report.best ? ", the best so far" : ""));
  line_open_ = false;
}

bool Progress::is_due(const StepReport& report) const {
  if (report.step == report.steps) return true;
  if (rewrites_line_) return Clock::now() - shown_ >= std::chrono::milliseconds(100);
  return report.step * 10 / report.steps > (report.step - 1) * 10 / report.steps;
}

void Progress::show(const StepReport& report) {
  const double passed = seconds();
  const double left =
      passed / static_cast<double>(steps_here_) * static_cast<double>(report.steps - report.step);
  const double loss = recent_tokens_ > 0 ? recent_nats_ / static_cast<double>(recent_tokens_)
                                         : std::numeric_limits<double>::quiet_NaN();
  const std::string total = with_commas(report.steps);
  std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  rate {:.2e}  norm {:.2f}  {:>9} tokens/s  {} left",
      with_commas(report.step), total.size(), total, loss, report.learning_rate, report.gradient_norm,
      with_commas(static_cast<std::int64_t>(static_cast<double>(tokens_) / passed)), duration(left));
  if (skipped_ > 0) line += fmt::format("  {} skipped", with_commas(skipped_));
  if (rewrites_line_) {
    // The line is cut to the terminal, because a wrapped one could not be rewritten, and erased to its end,
    // because the line before may have been longer.
    line.resize(std::min(line.size(), static_cast<std::size_t>(detail::width_of(out_) - 1)));
    detail::put(out_, fmt::format("\r{}\x1b[K", line));
  } else {
    detail::put(out_, line + "\n");
  }
  line_open_ = rewrites_line_;
  shown_ = Clock::now();
  recent_nats_ = 0;
  recent_tokens_ = 0;
}

}  // namespace fovea
