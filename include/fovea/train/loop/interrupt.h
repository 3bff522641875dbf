#pragma once

#include <array>
#include <csignal>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// While an Interrupt lives, the first SIGINT (Ctrl-C) or SIGTERM only sets a flag, so that a loop can finish
/// its step, save and stop. A second signal ends the program as usual. Signals that are ignored stay ignored.
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
  std::array<struct sigaction, 2> before_{};
};

}  // namespace fovea
