#include "fovea/train/loop/interrupt.h"

#include <atomic>
#include <cstdint>
#include <ctime>

namespace fovea {
namespace {

constexpr std::array handled{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// timeout(1) and terminals signal a program and its group, so that one request may arrive twice at once.
constexpr std::int64_t same_request_nanoseconds = 500'000'000;

std::atomic<int> received = 0;
std::atomic<std::int64_t> received_at = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "signal handlers must not wait for locks");

std::int64_t nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A handler has C linkage; `static` keeps its plain name inside this file.
extern "C" {
static void remember(int signal) {
  if (received == 0) {
    received_at = nanoseconds();
    received = signal;
    return;
  }
  if (signal == SIGHUP || signal == SIGPIPE || nanoseconds() - received_at < same_request_nanoseconds) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < handled.size(); ++i) {
    sigaction(handled[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(handled[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &before_[i], nullptr);
}

int Interrupt::signal() const { return received; }

}  // namespace fovea
