#include "fovea/train/loop/interrupt.h"

#include "tests/support/catch.h"

namespace fovea {
namespace {

void (*handler_of(int signal))(int) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

TEST_CASE("Interrupt: remembers the first signal, and restores the default for the next", "[trainer]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const auto before = handler_of(signal);
  {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    CHECK(interrupt.signal() == 0);
    std::raise(signal);
    CHECK(interrupt.requested());
    CHECK(interrupt.signal() == signal);
    CHECK(interrupt.exit_status() == 128 + signal);
    CHECK(handler_of(SIGINT) == SIG_DFL);
    CHECK(handler_of(SIGTERM) == SIG_DFL);
  }
  CHECK(handler_of(signal) == before);
  const Interrupt anew;
  CHECK_FALSE(anew.requested());
}

TEST_CASE("Interrupt: a signal that was ignored stays ignored", "[trainer]") {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(SIGINT);
    CHECK_FALSE(interrupt.requested());
    std::raise(SIGTERM);
    CHECK(handler_of(SIGTERM) == SIG_DFL);
    CHECK(handler_of(SIGINT) == SIG_IGN);
  }
  CHECK(handler_of(SIGINT) == SIG_IGN);
  std::signal(SIGINT, before);
}

}  // namespace
}  // namespace fovea
