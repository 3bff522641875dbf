#include "fovea/autograd/base/rng.h"

#include <bit>

#include "autograd/base/fail.h"

// Every operation here is exact or correctly rounded by IEEE 754 and never contracted (see the flags of this
// file in CMakeLists.txt), and no function of libm but sqrt is called, so draws are the same everywhere.
namespace fovea {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double pi = 0x1.921fb54442d18p+1;

// Natural logarithm of u in (0, 1]: u = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)).
double log_of(double u) {
  const auto bits = std::bit_cast<std::uint64_t>(u);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return exponent * ln2 + 2 * s * series;
}

// cos(2 pi t) for t in [0, 1), by symmetry from a Taylor polynomial on [0, pi/4].
double cosine_of_turn(double t) {
  if (t > 0.5) t = 1 - t;
  const bool negative = t > 0.25;
  if (negative) t = 0.5 - t;
  const bool complement = t > 0.125;
  const double x = 2 * pi * (complement ? 0.25 - t : t);
  const double x2 = x * x;
  double value = 0;
  if (complement) {
    for (int k = 19; k >= 3; k -= 2) value = (value + 1) * -x2 / (k * (k - 1));
    value = x * (1 + value);
  } else {
    for (int k = 18; k >= 2; k -= 2) value = (value + 1) * -x2 / (k * (k - 1));
    value += 1;
  }
  return negative ? -value : value;
}

double sqrt_of(double x) { return __builtin_sqrt(x); }

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(counter),
                                 static_cast<std::uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

std::uint64_t Rng::next() {
  const auto block = philox(state_.seed, state_.position++);
  return std::uint64_t{block[1]} << 32 | block[0];
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() {
  const auto block = philox(state_.seed, state_.position++);
  const std::uint64_t a = std::uint64_t{block[1]} << 32 | block[0];
  const std::uint64_t b = std::uint64_t{block[3]} << 32 | block[2];
  const double radius_from =
      (static_cast<double>(a >> 11) + 1) * 0x1p-53;  // in (0, 1]: its logarithm is finite
  const double turn = static_cast<double>(b >> 11) * 0x1p-53;
  return sqrt_of(-2 * log_of(radius_from)) * cosine_of_turn(turn);
}

std::int64_t Rng::uniform_int(std::int64_t n) {
  if (n < 1)
    fail<ValueError>("[Rng::uniform_int] a number below {} was asked for: the limit must be at least 1", n);
  const auto limit = static_cast<std::uint64_t>(n);
  const std::uint64_t unfair = (0 - limit) % limit;  // 2^64 mod n: the draws that would favour low numbers
  std::uint64_t draw = next();
  while (draw < unfair) draw = next();
  return static_cast<std::int64_t>(draw % limit);
}

Rng Rng::split() { return Rng(next()); }

}  // namespace fovea
