#include "fovea/train/loop/interrupt.h"

namespace fovea {
namespace {

constexpr std::array handled{SIGINT, SIGTERM};

volatile std::sig_atomic_t received = 0;

// A handler has C linkage; `static` keeps its plain name inside this file.
extern "C" {
static void remember(int signal) {
  received = signal;
  for (const int each : handled) {
    struct sigaction now {};
    sigaction(each, nullptr, &now);
    if (now.sa_handler == remember) std::signal(each, SIG_DFL);  // one that is ignored stays so
  }
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
