#include "fovea/autograd/base/rng.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/tensor/tensor.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// Philox4x32-10 as the paper states it, on full keys and counters, to check the library's on those it takes.
std::array<std::uint32_t, 4> reference(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * c[0], right = std::uint64_t{0xCD9E8D57} * c[2];
    const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
    const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
    c = {high(right) ^ c[1] ^ k[0], low(right), high(left) ^ c[3] ^ k[1], low(left)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

using Block = std::array<std::uint32_t, 4>;

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments_of(const std::vector<double>& draws) {
  Moments m;
  const auto n = static_cast<double>(draws.size());
  for (const double x : draws) m.mean += x / n;
  for (const double x : draws) m.variance += (x - m.mean) * (x - m.mean) / n;
  for (const double x : draws) {
    const double z = (x - m.mean) / std::sqrt(m.variance);
    m.skewness += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
  }
  return m;
}

template <class Draw>
std::vector<double> draws(std::size_t n, Draw draw) {
  std::vector<double> values(n);
  for (double& value : values) value = draw();
  return values;
}

}  // namespace

TEST_CASE("philox gives the known answers of Random123") {
  CHECK(philox(0, 0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  // The other known answers have counters of more than 64 bits; a reference that gives them checks the
  // library.
  const std::uint32_t f = 0xffffffff;
  CHECK(reference({f, f, f, f}, {f, f}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(reference({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  std::uint64_t key = 0x299f31d0a4093822, counter = 0x85a308d3243f6a88;
  for (int i = 0; i < 100; ++i) {
    const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
    CHECK(philox(key, counter) ==
          reference({low(counter), low(counter >> 32), 0, 0}, {low(key), low(key >> 32)}));
    key = key * 6364136223846793005 + 1442695040888963407;
    counter = counter * 6364136223846793005 + 1;
  }
}

TEST_CASE("a seed gives the same stream everywhere") {
  Rng rng(42);
  CHECK(rng.next() == (std::uint64_t{philox(42, 0)[1]} << 32 | philox(42, 0)[0]));
  CHECK(rng.uniform() ==
        static_cast<double>((std::uint64_t{philox(42, 1)[1]} << 32 | philox(42, 1)[0]) >> 11) * 0x1p-53);
  CHECK(rng.state() == Rng::State{42, 2});
}

TEST_CASE("normals are those of Box and Muller, to the last bits") {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Block block = philox(7, i);
    const double u = (static_cast<double>((std::uint64_t{block[1]} << 32 | block[0]) >> 11) + 1) * 0x1p-53;
    const double t = static_cast<double>((std::uint64_t{block[3]} << 32 | block[2]) >> 11) * 0x1p-53;
    const double expected = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * t);
    CHECK(std::abs(Rng(Rng::State{7, i}).normal() - expected) <=
          1e-15 * std::max(1.0, std::abs(expected)) * 4);
  }
}

TEST_CASE("uniforms and normals have the moments they should") {
  Rng rng(3);
  const Moments uniform = moments_of(draws(200'000, [&] { return rng.uniform(); }));
  CHECK(uniform.mean == Approx(0.5).margin(0.004));
  CHECK(uniform.variance == Approx(1.0 / 12).margin(0.001));
  CHECK(uniform.skewness == Approx(0).margin(0.02));
  CHECK(uniform.kurtosis == Approx(1.8).margin(0.02));
  const Moments normal = moments_of(draws(200'000, [&] { return rng.normal(); }));
  CHECK(normal.mean == Approx(0).margin(0.01));
  CHECK(normal.variance == Approx(1).margin(0.015));
  CHECK(normal.skewness == Approx(0).margin(0.03));
  CHECK(normal.kurtosis == Approx(3).margin(0.06));
}

TEST_CASE("uniforms stay from 0 to below 1 and fill it") {
  Rng rng(5);
  std::vector<int> tenths(10, 0);
  for (int i = 0; i < 100'000; ++i) {
    const double u = rng.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++tenths[static_cast<std::size_t>(10 * u)];
  }
  for (const int count : tenths) CHECK(count == Approx(10'000).margin(400));
}

TEST_CASE("uniform_int is fair and stays below its limit") {
  Rng rng(11);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70'000; ++i) ++counts[static_cast<std::size_t>(rng.uniform_int(7))];
  for (const int count : counts) CHECK(count == Approx(10'000).margin(400));
  CHECK(rng.uniform_int(1) == 0);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t large = rng.uniform_int(std::int64_t{1} << 62);
    CHECK((large >= 0 && large < std::int64_t{1} << 62));
  }
  CHECK_THROWS_AS(rng.uniform_int(0), ValueError);
  CHECK_THROWS_AS(rng.uniform_int(-3), ValueError);
}

TEST_CASE("a stream resumes from its state") {
  Rng rng(13);
  for (int i = 0; i < 10; ++i) rng.normal();
  Rng resumed(rng.state());
  for (int i = 0; i < 10; ++i) {
    CHECK(resumed.normal() == rng.normal());
    CHECK(resumed.uniform_int(1000) == rng.uniform_int(1000));
  }
  CHECK(resumed.state() == rng.state());
}

TEST_CASE("split generators are independent, and the same for the same state") {
  Rng rng(17), same(17);
  Rng a = rng.split(), b = rng.split();
  CHECK(a.state().seed != b.state().seed);
  CHECK(same.split().state() == Rng(17).split().state());
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    seen.insert(a.next());
    seen.insert(b.next());
    seen.insert(rng.next());
  }
  CHECK(seen.size() == 300);
  double product = 0;
  for (int i = 0; i < 10'000; ++i) product += a.normal() * b.normal() / 10'000;
  CHECK(product == Approx(0).margin(0.05));
}

TEST_CASE("random tensors are a function of the generator's state") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(19), same(19), other(20);
  const Tensor x = randn({3, 5}, rng, dtype);
  CHECK(x.dtype() == dtype);
  CHECK(x.to_vector() == randn({3, 5}, same, dtype).to_vector());
  CHECK(x.to_vector() != randn({3, 5}, other, dtype).to_vector());
  CHECK(x.to_vector() != randn({3, 5}, rng, dtype).to_vector());
  // f32 draws are the f64 draws, rounded.
  Rng wide(19);
  const std::vector<double> exact = randn({3, 5}, wide, f64).to_vector();
  for (std::size_t i = 0; i < 15; ++i) CHECK(x.to_vector()[i] == Approx(exact[i]).epsilon(1e-7));
  const Tensor u = uniform({1000}, rng, -3, 5, dtype);
  for (const double value : u.to_vector()) CHECK((value >= -3 && value <= 5));
  CHECK(moments_of(u.to_vector()).mean == Approx(1).margin(0.3));
}

TEST_CASE("uniform draws fill a range that is wider than f64 can say, and bounds must be finite") {
  Rng rng(23);
  const std::vector<double> draws = uniform({1000}, rng, -1e308, 1e308, f64).to_vector();
  int negative = 0;
  for (const double value : draws) {
    CHECK((value >= -1e308 && value < 1e308));
    negative += value < 0 ? 1 : 0;
  }
  CHECK(negative == Approx(500).margin(80));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(uniform({3}, rng, 0, infinity, f64), ValueError);
  CHECK_THROWS_AS(uniform({3}, rng, -infinity, 0), ValueError);
  CHECK_THROWS_AS(uniform({3}, rng, 0, 1e39), ValueError);  // infinite in f32
}
