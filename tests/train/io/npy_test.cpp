#include "fovea/train/io/npy.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The header that numpy.save writes: 10 bytes, the dictionary, and spaces and a newline up to a multiple
// of 64.
std::string npy_header(const std::string& dictionary) {
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary +
         std::string(117 - dictionary.size(), ' ') + "\n";
}

TEST_CASE("save_npy: writes the same bytes as NumPy", "[train]") {
  const TemporaryFolder folder;
  save_npy(folder / "x.npy", tensor({{1, -2}, {0.5, 0}}));
  CHECK(bytes_of(folder / "x.npy") ==
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }") +
            std::string("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f\0\0\0\0", 16));

  save_npy(folder / "x.npy", transpose(tensor({{1, -2}, {0.5, 0}})));
  CHECK(bytes_of(folder / "x.npy").substr(128) ==
        std::string("\0\0\x80\x3f\0\0\0\x3f\0\0\0\xc0\0\0\0\0", 16));

  save_npy(folder / "x.npy", scalar(1, f64));
  CHECK(bytes_of(folder / "x.npy") == npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }") +
                                          std::string("\0\0\0\0\0\0\xf0\x3f", 8));

  save_npy(folder / "x.npy", zeros({3, 0}));
  CHECK(bytes_of(folder / "x.npy") ==
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }"));
}

TEST_CASE("save_npz: the bytes of an archive of one tensor", "[train]") {
  const TemporaryFolder folder;
  save_npz(folder / "x.npz", {{"W", tensor({1, -2, 3})}});
  const std::string bytes = bytes_of(folder / "x.npz");
  save_npy(folder / "x.npy", tensor({1, -2, 3}));
  const std::string npy = bytes_of(folder / "x.npy");
  REQUIRE(npy.size() == 140);

  // The checksum is what Python's zlib.crc32 gives for x.npy.
  const std::string common(
      "\x14\0\0\x08\0\0\0\0\x21\0"
      "\xe5\x16\xa6\x60"
      "\x8c\0\0\0\x8c\0\0\0\x05\0\0\0",
      26);
  const std::string local = std::string("PK\x03\x04", 4) + common + "W.npy";
  const std::string directory = std::string("PK\x01\x02\x14\0", 6) + common + std::string(14, '\0') + "W.npy";
  const std::string end =
      std::string("PK\x05\x06\0\0\0\0\x01\0\x01\0", 12) + std::string("\x33\0\0\0\xaf\0\0\0\0\0", 10);
  CHECK(bytes == local + npy + directory + end);
}

TEST_CASE("save_npz: names and sizes that an archive can't hold are refused", "[train]") {
  const TemporaryFolder folder;
  const Tensor x = ones({2});
  const auto save = [&](const std::vector<NamedTensor>& tensors) { save_npz(folder / "x.npz", tensors); };
  CHECK_THROWS_WITH(save({{"x", x}, {"x", x}}), ContainsSubstring("the name 'x' is in the list twice"));
  CHECK_THROWS_AS(save({{"", x}}), ValueError);
  CHECK_THROWS_AS(save({{std::string(65'001, 'x'), x}}), ValueError);
  std::vector<NamedTensor> many(65'535, {"", x});
  for (std::size_t i = 0; i < many.size(); ++i) many[i].name = fmt::format("{}", i);
  CHECK_THROWS_WITH(save(many), ContainsSubstring("more than a ZIP archive can hold"));
  CHECK_FALSE(std::filesystem::exists(folder / "x.npz"));
  save({});
  CHECK(bytes_of(folder / "x.npz").size() == 22);
  CHECK_THROWS_WITH(save_npy(folder / "none" / "x.npy", x), ContainsSubstring("[save_npy] can't write"));
}

}  // namespace
}  // namespace fovea
