#include "cli/progress.h"

#include <fmt/format.h>

#include <string>

#include "cli/terminal.h"

namespace fovea::cli {
namespace {

std::string duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(std::int64_t steps, std::FILE* out)
    : steps_(steps), out_(out), rewrites_(is_terminal(out)) {}

Progress::~Progress() {
  if (rewrites_ && done_ > 0) fmt::print(out_, "\n");
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::step(double loss, std::int64_t tokens) {
  ++done_;
  tokens_ += tokens;
  recent_tokens_ += tokens;
  recent_nats_ += loss * static_cast<double>(tokens);
  if (due()) show();
}

bool Progress::due() const {
  if (done_ == steps_) return true;
  if (rewrites_) return Clock::now() - shown_ >= std::chrono::milliseconds(100);
  return done_ * 10 / steps_ > (done_ - 1) * 10 / steps_;
}

void Progress::show() {
  const double passed = seconds();
  const double left = passed / static_cast<double>(done_) * static_cast<double>(steps_ - done_);
  const std::string total = with_commas(steps_);
  const std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  {:>9} tokens/s  {} left", with_commas(done_), total.size(), total,
      recent_nats_ / static_cast<double>(recent_tokens_),
      with_commas(static_cast<std::int64_t>(static_cast<double>(tokens_) / passed)), duration(left));
  // Erasing to the end of the line removes what a longer one left.
  fmt::print(out_, "{}{}{}", rewrites_ ? "\r" : "", line, rewrites_ ? "\x1b[K" : "\n");
  std::fflush(out_);
  shown_ = Clock::now();
  recent_nats_ = 0;
  recent_tokens_ = 0;
}

}  // namespace fovea::cli
