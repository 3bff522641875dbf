// Loads 10,000 mutations of the fuzzer's corpus, which are the same each time and with any compiler. Each
// must give tensors or a FileError, without a crash, a hang or memory far beyond the file's size.
//
//   safetensors_mutations CORPUS [NUMBER]    tries all mutations, or only one, for a debugger

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/train/io/safetensors.h"
#include "tests/fuzz/largest_block.h"
#include "tests/fuzz/safetensors_mutator.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

template <class Load>
bool succeeds(const Load& load) {
  try {
    load();
    return true;
  } catch (const FileError&) {
    return false;
  }
}

bool loads(std::string_view bytes) {
  return succeeds([&] { load_safetensors(std::as_bytes(std::span(bytes)), {.skip_other_dtypes = true}); });
}

struct CorpusFile {
  std::string name;
  std::string bytes;
};

// The files of the corpus that load without a mutation.
std::vector<CorpusFile> read_corpus(const fs::path& folder) {
  std::vector<CorpusFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (loads(bytes)) files.push_back({entry.path().filename().string(), bytes});
  }
  std::ranges::sort(files, {}, &CorpusFile::name);
  return files;
}

/// Tries mutations and counts the results.
class Trial {
 public:
  explicit Trial(std::vector<CorpusFile> corpus) : corpus_(std::move(corpus)) {}

  void run(std::uint64_t number) {
    const auto& [name, whole] = corpus_.at(number % corpus_.size());
    what_ = fmt::format("mutation {}, of {}", number, name);
    const std::string bytes = SafetensorsMutator(number).mutate(whole);
    try {
      const bool loaded = run_in_memory(bytes);
      if (number % 10 == 0) run_as_file(bytes, loaded);
      ++(loaded ? loaded_ : refused_);
    } catch (const std::exception& error) {
      check(false, "instead of a FileError there is '{}'", error.what());
    }
  }

  /// Prints the counts and returns whether there was no fault.
  bool report() const {
    fmt::print("{} load, {} are refused, {} faults\n", loaded_, refused_, faults_);
    return faults_ == 0;
  }

 private:
  bool run_in_memory(const std::string& bytes) {
    const std::int64_t before = memory().live_bytes;
    reset_peak_memory();
    largest_block = 0;
    const bool loaded = loads(bytes);
    const std::size_t block = largest_block;
    const std::int64_t tensors = memory().peak_bytes - before;

    // A growing text doubles its capacity, and 16-bit floats become f32: twice the size. In files as small as
    // these the rest is what is stored about each tensor, and error messages.
    const std::size_t bound = 2 * bytes.size() + 1500;
    check(block <= bound, "a block of {} bytes for a file of {}", block, bytes.size());
    check(tensors <= static_cast<std::int64_t>(bound), "tensors of {} bytes for a file of {}", tensors,
          bytes.size());
    check(memory().live_bytes == before, "{} bytes are not released", memory().live_bytes - before);
    return loaded;
  }

  void run_as_file(const std::string& bytes, bool loaded) {
    const fs::path path = folder_ / "x.safetensors";
    std::ofstream(path, std::ios::binary) << bytes;
    const bool file = succeeds([&] { load_safetensors(path, {.skip_other_dtypes = true}); });
    const bool header = succeeds([&] { read_safetensors_header(path); });
    check(file == loaded && header == loaded,
          "it loads from memory: {}, from a file: {}, its header loads: {}", loaded, file, header);
  }

  template <class... Args>
  void check(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (holds) return;
    ++faults_;
    fmt::print("{}: {}\n", what_, fmt::format(text, std::forward<Args>(args)...));
  }

  std::vector<CorpusFile> corpus_;
  TemporaryFolder folder_;
  std::string what_;
  int loaded_ = 0, refused_ = 0, faults_ = 0;
};

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("usage: safetensors_mutations CORPUS [NUMBER]\n");
    return 2;
  }
  auto corpus = fovea::read_corpus(argv[1]);
  if (corpus.empty()) {
    fmt::print("{} has no file of tensors\n", argv[1]);
    return 2;
  }
  fovea::Trial trial(std::move(corpus));
  if (argc > 2) {
    trial.run(std::stoull(argv[2]));
  } else {
    for (std::uint64_t number = 0; number < 10'000; ++number) trial.run(number);
  }
  return trial.report() ? 0 : 1;
}
