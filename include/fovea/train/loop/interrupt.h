#pragma once

#include <array>
#include <csignal>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// While one of these lives, the first SIGINT (Ctrl-C) or SIGTERM only sets a flag, so that a loop can end
/// its step, save and stop; a second one ends the program as usual. A signal that is ignored stays so.
///
///   Interrupt interrupt;
///   Trainer trainer(model, optimizer, source, {.stop = [&] { return interrupt.requested(); }});
///
/// One at a time, for signals belong to the whole program.
class FOVEA_API Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return signal() != 0; }
  /// Which signal it was; 0 if there was none. A program that it stops exits with `exit_status()`.
  int signal() const;
  /// 128 + the signal, as shells have it.
  int exit_status() const { return 128 + signal(); }

 private:
  std::array<struct sigaction, 2> before_{};
};

}  // namespace fovea
