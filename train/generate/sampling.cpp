#include "fovea/train/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "autograd/base/fail.h"
#include "autograd/base/non_finite.h"
#include "train/generate/check_sampling.h"

namespace fovea {
namespace {

std::vector<double> checked_values(const Tensor& logits) {
  if (logits.rank() != 1 || logits.numel() == 0) {
    fail<ShapeError>("[token_probabilities] expects the logits (V,) of one position, but got {}",
                     to_string(logits.shape()));
  }
  std::vector<double> values = logits.to_vector();
  bool any = false;
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (std::isnan(values[id]) || values[id] == infinity) {
      fail<NonFiniteError>(
          "[token_probabilities] the logit of token {} is {}: has training diverged? An Anomaly scope around "
          "the model's call shows where it arises",
          id, values[id]);
    }
    any = any || values[id] > -infinity;
  }
  if (!any) {
    fail<NonFiniteError>(
        "[token_probabilities] all {} logits are -inf, so there is no token to choose: are all of them "
        "masked?",
        values.size());
  }
  return values;
}

// Probabilities are compared with a share as equal within what rounding may have changed them by: the logits
// in their dtype, and the sums of them in f64. So tokens that add up to the share in numbers are enough for
// it.
double rounding_of(Dtype dtype) { return dtype == f32 ? 1e-6 : 1e-12; }

// softmax(z / temperature), not yet scaled to add up to 1. The largest logit is subtracted first, so that the
// likeliest token has exp(0) for any temperature.
std::vector<double> tempered(const std::vector<double>& logits, double temperature) {
  const auto likeliest = std::ranges::max_element(logits);  // the first of equal ones
  std::vector<double> p(logits.size());
  if (temperature == 0) {
    p[static_cast<std::size_t>(likeliest - logits.begin())] = 1;
  } else {
    std::ranges::transform(logits, p.begin(),
                           [&](double z) { return std::exp((z - *likeliest) / temperature); });
  }
  return p;
}

void scale_to_one(std::vector<double>& p) {
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= total;
}

// The ids of the n likeliest tokens, from the likeliest on.
std::vector<std::size_t> likeliest_ids(const std::vector<double>& p, std::size_t n) {
  std::vector<std::size_t> ids(p.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(n, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&p](std::size_t a, std::size_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  ids.erase(end, ids.end());
  return ids;
}

void keep_only(std::vector<double>& p, std::span<const std::size_t> ids) {
  std::vector<double> kept(p.size());
  for (const std::size_t id : ids) kept[id] = p[id];
  p = std::move(kept);
  scale_to_one(p);
}

void keep_top_k(std::vector<double>& p, std::int64_t k) {
  if (k > 0) keep_only(p, likeliest_ids(p, static_cast<std::size_t>(k)));
}

void keep_top_p(std::vector<double>& p, double share, double rounding) {
  if (share == 1) return;
  const std::vector<std::size_t> ids = likeliest_ids(p, p.size());
  std::size_t count = 0;
  for (double total = 0; count < ids.size() && total < share * (1 - rounding); ++count)
    total += p[ids[count]];
  keep_only(p, std::span(ids).first(count));
}

void keep_min_p(std::vector<double>& p, double ratio, double rounding) {
  const double least = ratio * (1 - rounding) * *std::ranges::max_element(p);
  for (double& each : p) {
    if (each < least) each = 0;
  }
  scale_to_one(p);
}

}  // namespace

void detail::check_sampling(const Sampling& sampling) {
  const auto& [temperature, top_k, top_p, min_p] = sampling;
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    fail<ValueError>("[Sampling] temperature is {}: it must be finite and at least 0 (greedy)", temperature);
  }
  if (top_k < 0) fail<ValueError>("[Sampling] top_k is {}: it must be at least 0 (all tokens)", top_k);
  if (!(top_p > 0 && top_p <= 1)) {
    fail<ValueError>("[Sampling] top_p is {}: it must be above 0 and at most 1 (all tokens)", top_p);
  }
  if (!(min_p >= 0 && min_p <= 1)) {
    fail<ValueError>("[Sampling] min_p is {}: it must be between 0 (all tokens) and 1", min_p);
  }
}

std::vector<double> token_probabilities(const Tensor& logits, const Sampling& sampling) {
  detail::check_sampling(sampling);
  std::vector<double> p = tempered(checked_values(logits), sampling.temperature);
  scale_to_one(p);
  const double rounding = rounding_of(logits.dtype());
  keep_top_k(p, sampling.top_k);
  keep_top_p(p, sampling.top_p, rounding);
  keep_min_p(p, sampling.min_p, rounding);
  return p;
}

std::int64_t sample_token(const Tensor& logits, const Sampling& sampling, Rng& rng) {
  const std::vector<double> p = token_probabilities(logits, sampling);
  const double draw = rng.uniform();
  double total = 0;
  std::int64_t last = 0;
  for (std::size_t id = 0; id < p.size(); ++id) {
    if (p[id] == 0) continue;
    last = static_cast<std::int64_t>(id);
    total += p[id];
    if (total > draw) break;
  }
  return last;  // if rounding leaves the total below the draw, the last token that is possible
}

}  // namespace fovea
