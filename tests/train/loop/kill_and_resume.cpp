// Kills a run, resumes it, and compares its checkpoints and logs with those of a run that was never stopped.
//   kill_and_resume PROGRAM FOLDER N      kills N times at random instants
//   kill_and_resume PROGRAM FOLDER each   kills a small run once at each of its operations on files
// PROGRAM is kill_run; FOLDER is made anew.

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "fovea/autograd/base/rng.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Starts a run: a small one that kills itself at an operation if that is given, else one of the usual size.
pid_t start(const fs::path& program, const fs::path& folder, const char* operation = nullptr) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("can't fork");
  if (child == 0) {
    execl(program.c_str(), program.c_str(), folder.c_str(), operation, nullptr);
    _exit(127);
  }
  return child;
}

// Waits for the run, and returns whether it was killed. A run that failed is an error.
bool was_killed(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return true;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("a run failed");
  return false;
}

bool killed_after(Seconds delay, const fs::path& program, const fs::path& folder) {
  const pid_t child = start(program, folder);
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  return was_killed(child);
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the runs were doing when they were killed.
struct Phases {
  int before_first_checkpoint = 0;
  int saving = 0;    // there is a temporary file
  int removing = 0;  // there are more checkpoints than are kept
  int between = 0;   // none of these

  void count(const fs::path& folder) {
    int temporary = 0, checkpoints = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints", ignored)) {
      const std::string name = entry.path().filename().string();
      temporary += name.ends_with(".tmp") ? 1 : 0;
      checkpoints += name.starts_with("step-") ? 1 : 0;
    }
    ++(checkpoints == 0  ? before_first_checkpoint
       : temporary > 0   ? saving
       : checkpoints > 2 ? removing
                         : between);
  }
};

// Whether a file must be bit by bit the same. TensorBoard's events hold times, so only their size is.
bool holds_no_times(const fs::path& name) {
  return name == "log.jsonl" || name.parent_path() == "checkpoints";
}

std::string differences(const fs::path& expected, const fs::path& found) {
  std::string text;
  std::size_t files[2] = {};
  for (const auto& entry : fs::recursive_directory_iterator(expected)) {
    if (!entry.is_regular_file()) continue;
    ++files[0];
    const fs::path name = fs::relative(entry.path(), expected);
    const bool same = holds_no_times(name) ? bytes_of(entry.path()) == bytes_of(found / name)
                                           : fs::file_size(entry.path()) == fs::file_size(found / name);
    if (!same) text += " " + name.string();
  }
  for (const auto& entry : fs::recursive_directory_iterator(found))
    files[1] += entry.is_regular_file() ? 1 : 0;
  if (files[0] != files[1]) text += fmt::format(" ({} files, and {} expected)", files[1], files[0]);
  return text;
}

bool same_as_whole(const fs::path& folder, const fs::path& run, int killed) {
  const std::string different = differences(folder / "whole", run);
  if (!different.empty()) fmt::print("after kill {}, {} differs in{}\n", killed, run.string(), different);
  return different.empty();
}

bool kill_at_random(const fs::path& program, const fs::path& folder, int kills) {
  const auto begin = Clock::now();
  if (was_killed(start(program, folder / "whole"))) throw std::runtime_error("the whole run was killed");
  const Seconds whole = Clock::now() - begin;

  fovea::Rng rng(1);
  Phases phases;
  int runs = 0, killed = 0;
  for (bool done = false; !done || killed < kills;) {
    const fs::path run = folder / std::to_string(runs);
    // A new run is killed early, so that kills before its first checkpoint are tried, too.
    const Seconds delay = whole * rng.uniform() * (fs::exists(run / "checkpoints") ? 0.25 : 0.03);
    done = killed < kills ? !killed_after(delay, program, run) : !was_killed(start(program, run));
    if (!done) {
      ++killed;
      phases.count(run);
      continue;
    }
    if (!same_as_whole(folder, run, killed)) return false;
    ++runs;
  }
  fmt::print(
      "{} kills in {} runs, each the same as one that was not killed ({:.2f} s): {} before the first "
      "checkpoint, {} within saving, {} before old ones were removed, {} between\n",
      kills, runs, whole.count(), phases.before_first_checkpoint, phases.saving, phases.removing,
      phases.between);
  return true;
}

bool kill_at_each(const fs::path& program, const fs::path& folder) {
  if (was_killed(start(program, folder / "whole", "0"))) throw std::runtime_error("the whole run was killed");
  for (int operation = 1;; ++operation) {
    const fs::path run = folder / std::to_string(operation);
    const bool killed = was_killed(start(program, run, std::to_string(operation).c_str()));
    if (killed && was_killed(start(program, run, "0"))) throw std::runtime_error("a resumed run was killed");
    if (!same_as_whole(folder, run, operation)) return false;
    if (!killed) {
      fmt::print("killed at each of {} operations, and the same each time\n", operation - 1);
      return operation > 1;
    }
    fs::remove_all(run);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const fs::path program = argv[1], folder = argv[2];
    fs::remove_all(folder);
    fs::create_directories(folder);
    const bool same = argv[3] == std::string("each") ? kill_at_each(program, folder)
                                                     : kill_at_random(program, folder, std::stoi(argv[3]));
    if (same) fs::remove_all(folder);
    return same ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kill_and_resume: {}\n", error.what());
    return 1;
  }
}
