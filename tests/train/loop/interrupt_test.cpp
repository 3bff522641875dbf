#include "fovea/train/loop/interrupt.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"

namespace fovea {
namespace {

void (*handler_of(int signal))(int) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

// The signal that ends a child process which runs `action`; 0 if none does.
template <class Action>
int signal_that_ends(const Action& action) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    action();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void wait_for_another_request() { std::this_thread::sleep_for(std::chrono::milliseconds(600)); }

TEST_CASE("Interrupt: remembers the first signal", "[trainer]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGPIPE);
  const auto before = handler_of(signal);
  {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    CHECK(interrupt.signal() == 0);
    std::raise(signal);
    CHECK(interrupt.requested());
    CHECK(interrupt.signal() == signal);
    CHECK(interrupt.exit_status() == 128 + signal);
    std::raise(SIGHUP);
    CHECK(interrupt.signal() == signal);
  }
  CHECK(handler_of(signal) == before);
  const Interrupt anew;
  CHECK_FALSE(anew.requested());
}

TEST_CASE("Interrupt: a second request ends the program, the echo of the first does not", "[trainer]") {
  const int first = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGPIPE);
  const int second = GENERATE(SIGINT, SIGTERM);
  CHECK(signal_that_ends([=] {
          const Interrupt interrupt;
          std::raise(first);
          std::raise(second);
        }) == 0);
  CHECK(signal_that_ends([=] {
          const Interrupt interrupt;
          std::raise(first);
          wait_for_another_request();
          std::raise(second);
        }) == second);
}

TEST_CASE("Interrupt: a terminal or pipe that is closed may signal again", "[trainer]") {
  CHECK(signal_that_ends([] {
          const Interrupt interrupt;
          std::raise(SIGHUP);
          wait_for_another_request();
          std::raise(SIGHUP);
          std::raise(SIGPIPE);
        }) == 0);
}

TEST_CASE("Interrupt: a signal that was ignored stays ignored", "[trainer]") {
  const int ignored = GENERATE(SIGINT, SIGHUP);
  const auto before = std::signal(ignored, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(ignored);
    CHECK_FALSE(interrupt.requested());
    std::raise(SIGTERM);
    CHECK(interrupt.signal() == SIGTERM);
    CHECK(handler_of(ignored) == SIG_IGN);
  }
  CHECK(handler_of(ignored) == SIG_IGN);
  std::signal(ignored, before);
}

}  // namespace
}  // namespace fovea
