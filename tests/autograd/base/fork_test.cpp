#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

// A process that was forked has one thread, and none of those that its parent's ops use. (The thread
// sanitizer does not allow such a process to start others, and the address sanitizer takes what the parent's
// threads held for leaks.)
#if !defined(FOVEA_THREAD_SANITIZER) && !defined(FOVEA_ADDRESS_SANITIZER)

using namespace fovea;

namespace {

// Enough elements for several threads.
bool adds_up() { return sum(ones({1 << 20}, f64)).item() == 1 << 20; }

// Runs f in a forked process, which then exits as programs do, and returns its exit status; -1 if it did not
// end by itself within 20 s.
template <class F>
int status_of_fork(const F& f) {
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    std::exit(f() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a process that is forked after a parallel op ends, and computes") {
  set_threads(3);
  REQUIRE(adds_up());
  CHECK(status_of_fork([] { return true; }) == 0);
  CHECK(status_of_fork(adds_up) == 0);
  CHECK(status_of_fork([] { return status_of_fork(adds_up) == 0; }) == 0);
  CHECK(adds_up());
}

TEST_CASE("a process may be forked while other threads compute") {
  set_threads(3);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) adds_up();
  });
  for (int i = 0; i < 20; ++i) CHECK(status_of_fork(adds_up) == 0);
  stop = true;
  other.join();
}

TEST_CASE("where no thread can be started, the caller does all the work") {
  set_threads(3);
  CHECK(status_of_fork([] {
          // No address space has room for such a stack, so no thread starts.
          pthread_attr_t attributes;
          pthread_attr_init(&attributes);
          pthread_attr_setstacksize(&attributes, std::size_t{1} << 60);
          pthread_setattr_default_np(&attributes);
          try {
            std::thread([] {}).join();
            return false;
          } catch (const std::system_error&) {
            return adds_up();
          }
        }) == 0);
}

#endif
