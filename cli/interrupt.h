#pragma once

#include <csignal>

namespace fovea::cli {

/// While one of these lives, the first Ctrl-C only sets a flag, so that a loop can end its line and stop; a
/// second one ends the program as usual. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  struct sigaction before_ {};
};

/// The exit status of a program that Ctrl-C has stopped.
inline constexpr int interrupted_status = 128 + SIGINT;

}  // namespace fovea::cli
