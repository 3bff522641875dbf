#include "fovea/train/loop/run_folder.h"

#include <barrier>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr int programs = 7;

// Calls take() on all threads at the same instant. A lock belongs to an open file, so it keeps threads apart
// as it does programs. Returns the folders, which stay locked.
template <class Take>
std::vector<RunFolder> at_once(const Take& take) {
  std::barrier start(programs);
  std::vector<std::optional<RunFolder>> taken(programs);
  std::vector<std::thread> threads;
  threads.reserve(programs);
  for (auto& folder : taken) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      try {
        folder = take();
      } catch (const FileError&) {
        folder.reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<RunFolder> folders;
  for (auto& folder : taken) {
    if (folder) folders.push_back(std::move(*folder));
  }
  return folders;
}

TEST_CASE("RunFolder: programs that start at the same instant get a folder each", "[trainer]") {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const fs::path path = folder / std::to_string(round) / "runs/names";
    const std::vector<RunFolder> taken = at_once([&] { return RunFolder::make_numbered(path); });
    std::set<fs::path> paths;
    for (const RunFolder& each : taken) paths.insert(each.path());
    std::set<fs::path> expected{path};
    for (int number = 2; number <= programs; ++number)
      expected.insert(path.string() + "-" + std::to_string(number));
    CHECK(paths == expected);
  }
}

TEST_CASE("RunFolder: of programs that name the same folder, one gets it", "[trainer]") {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const fs::path path = folder / std::to_string(round) / "named";
    CHECK(at_once([&] { return RunFolder::make(path); }).size() == 1);
    CHECK_NOTHROW(RunFolder::make(path));
  }
}

TEST_CASE("RunFolder: a lock ends with its object, and an error names the folder", "[trainer]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(RunFolder::open(folder / "a"),
                    ContainsSubstring("can't open the folder") && ContainsSubstring((folder / "a").string()));
  {
    RunFolder first = RunFolder::make(folder / "a");
    CHECK_THROWS_WITH(RunFolder::open(folder / "a"), ContainsSubstring("another run is being written in"));
    const RunFolder moved = std::move(first);
    CHECK_THROWS_AS(RunFolder::make(folder / "a"), FileError);
    CHECK_FALSE(moved.has_run());
  }
  const RunFolder again = RunFolder::open(folder / "a");
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_WITH(RunFolder::make(folder / "file"), ContainsSubstring("can't make the folder"));
  CHECK(RunFolder::make_numbered(folder / "file").path() == folder / "file-2");
  CHECK_THROWS_WITH(RunFolder::make_numbered(folder / "file/a"), ContainsSubstring("can't make the folder"));
}

TEST_CASE("RunFolder: a file that it writes replaces a link instead of following it", "[trainer]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine") << "mine";
  const RunFolder run = RunFolder::make(folder / "a");
  for (const char* name : {"config.toml", "config.toml.tmp"})
    fs::create_symlink(folder / "mine", folder / "a" / name);
  run.write("config.toml", "steps = 3\n");
  const auto text_of = [](const fs::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(text_of(folder / "a/config.toml") == "steps = 3\n");
  CHECK(text_of(folder / "mine") == "mine");
}

}  // namespace
}  // namespace fovea
