#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

std::int64_t distances(const char* op, std::int64_t queries, std::int64_t keys) {
  if (queries < 0 || keys < 0)
    fail<ValueError>("[{}] got {} queries and {} keys: a number cannot be negative", op, queries, keys);
  return std::max<std::int64_t>(0, queries + keys - 1);
}

// Half of the buckets are for the nearest distances, one each; the other half is shared by all beyond.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, std::int64_t max_distance) {
  const std::int64_t near = buckets / 2;
  if (distance < near) return distance;
  const auto over_near = [&](std::int64_t x) {
    return std::log(static_cast<double>(x) / static_cast<double>(near));
  };
  const double step = over_near(distance) / over_near(max_distance) * static_cast<double>(buckets - near);
  return std::min(near + static_cast<std::int64_t>(step), buckets - 1);
}

}  // namespace

Tensor alibi_slopes(std::int64_t heads, Dtype dtype) {
  if (heads < 1) fail<ValueError>("[alibi_slopes] got {} heads: there must be at least 1", heads);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const auto slope = [](std::int64_t i, std::int64_t n) {
    return std::exp2(-8 * static_cast<double>(i) / static_cast<double>(n));
  };
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i) slopes.push_back(slope(i, power));
  for (std::int64_t i = 1; power + (i + 1) / 2 <= heads; i += 2) slopes.push_back(slope(i, 2 * power));
  return from_values(slopes, {heads}, dtype);
}

Tensor alibi_bias(const Tensor& slopes, std::int64_t queries, std::int64_t keys) {
  if (slopes.rank() != 1) {
    fail<ShapeError>("[alibi_bias] slopes must have the shape (H,), one for each head, and have the shape {}",
                     to_string(slopes.shape()));
  }
  const std::int64_t n = distances("alibi_bias", queries, keys);
  const Tensor distance = arange(n, slopes.dtype()) - static_cast<double>(keys - 1);
  return reshape(slopes, {slopes.numel(), 1}) * -abs(distance);
}

Indices relative_buckets(std::int64_t queries, std::int64_t keys, const RelativeBuckets& options) {
  const std::int64_t n = distances("relative_buckets", queries, keys);
  const std::int64_t one_way = options.bidirectional ? options.buckets / 2 : options.buckets;
  if (one_way < 2 || (options.bidirectional && options.buckets % 2 != 0)) {
    fail<ValueError>("[relative_buckets] got {} buckets: {} needed, for near and far distances{}",
                     options.buckets,
                     options.bidirectional ? "an even number from 4 on is" : "at least 2 are",
                     options.bidirectional ? " each way" : "");
  }
  if (options.max_distance <= one_way / 2) {
    fail<ValueError>(
        "[relative_buckets] max_distance is {}: it must be greater than {}, since each distance below that "
        "has "
        "a bucket of its own",
        options.max_distance, one_way / 2);
  }
  return Indices({n}, [&](std::int64_t* out) {
    for (std::int64_t r = 0; r < n; ++r) {
      const std::int64_t ahead = r - (keys - 1);
      const std::int64_t behind = options.bidirectional ? std::abs(ahead) : std::max<std::int64_t>(0, -ahead);
      out[r] = bucket_of(behind, one_way, options.max_distance) +
               (options.bidirectional && ahead > 0 ? one_way : 0);
    }
  });
}

}  // namespace fovea
