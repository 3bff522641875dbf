// Thousands of damaged token files, the same each time. Each is refused, or gives ids below its vocabulary or
// an error that names the id.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/data/text_data.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"
#include "tests/support/mutate.h"

namespace fovea {
namespace {

TEST_CASE("TokenData: damaged token files are refused or give ids of their vocabulary", "[train]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "tokens.bin";
  std::vector<std::string> whole;
  for (const std::int64_t vocabulary : {53, 70'001}) {
    std::vector<std::int64_t> ids(131);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * i) % vocabulary;
    TokenData(ids, vocabulary).save(path);
    std::ifstream file(path, std::ios::binary);
    whole.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Rng rng(31);
  int opened = 0, refused = 0;
  for (std::size_t i = 0; i < 12'000; ++i) {
    INFO("mutation " << i);
    std::ofstream(path, std::ios::binary) << mutated(whole[i % whole.size()], rng);
    try {
      const TokenData data = TokenData::open(path);
      ++opened;
      std::vector<std::int64_t> ids(static_cast<std::size_t>(data.size()));
      data.read(0, ids);
      CHECK(std::ranges::all_of(ids, [&](std::int64_t id) { return 0 <= id && id < data.vocabulary(); }));
    } catch (const FileError& error) {
      ++refused;
      CHECK(std::string(error.what()) == detail::printable(error.what()));
    }
  }
  CHECK(opened > 100);
  CHECK(refused > 1'000);
}

}  // namespace
}  // namespace fovea
