#include "cli/interrupt.h"

namespace fovea::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

extern "C" void set_flag(int) { flag = 1; }

}  // namespace

Interrupt::Interrupt() {
  flag = 0;
  struct sigaction action {};
  action.sa_handler = set_flag;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &before_, nullptr); }

bool Interrupt::requested() const { return flag != 0; }

}  // namespace fovea::cli
