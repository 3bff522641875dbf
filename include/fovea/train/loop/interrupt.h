#pragma once

#include <array>
#include <csignal>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// While an Interrupt lives, the first SIGINT (Ctrl-C), SIGTERM, SIGHUP (a closed terminal) or SIGPIPE (a
/// reader that is gone) only sets a flag, so that a loop can finish its step, save and stop. Half a second
/// later, a second SIGINT or SIGTERM ends the program as usual; further SIGHUPs and SIGPIPEs change nothing,
/// because it is no person who sends them. Signals that are ignored, as SIGHUP is under nohup, stay ignored.
///
///   const Interrupt interrupt;
///   trainer.stop_when(interrupted(interrupt));
///
/// Only one Interrupt may live at a time, because signal handlers belong to the whole program.
class FOVEA_API Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return signal() != 0; }
  /// The signal that was received; 0 if there was none.
  int signal() const;
  /// The exit status by which a shell recognises a program that the signal ended: 128 + the signal.
  int exit_status() const { return 128 + signal(); }

 private:
  std::array<struct sigaction, 4> before_{};
};

}  // namespace fovea
