#include "fovea/train/generate/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

// Sampling ---------------------------------------------------------------------------------------------

void check_sampling(const Sampling& sampling) {
  const auto& [temperature, top_k, top_p, min_p] = sampling;
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    fail<ValueError>("[Sampling] temperature is {}: it must be finite and 0 (greedy) or more", temperature);
  }
  if (top_k < 0) fail<ValueError>("[Sampling] top_k is {}: it must be 0 (all tokens) or more", top_k);
  if (!(top_p > 0 && top_p <= 1)) {
    fail<ValueError>("[Sampling] top_p is {}: it must be above 0 and at most 1 (all tokens)", top_p);
  }
  if (!(min_p >= 0 && min_p <= 1)) {
    fail<ValueError>("[Sampling] min_p is {}: it must be 0 (all tokens) to 1", min_p);
  }
}

std::vector<double> checked_values(const Tensor& logits) {
  if (logits.rank() != 1 || logits.numel() == 0) {
    fail<ShapeError>("[token_probabilities] expects the logits (V,) of one position, and got {}",
                     to_string(logits.shape()));
  }
  std::vector<double> values = logits.to_vector();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool any = false;
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (std::isnan(values[id]) || values[id] == infinity) {
      fail<NonFiniteError>(
          "[token_probabilities] the logit of token {} is {}: has training diverged? An Anomaly scope around "
          "the model's call says where it arises",
          id, values[id]);
    }
    any = any || values[id] > -infinity;
  }
  if (!any) {
    fail<NonFiniteError>(
        "[token_probabilities] all {} logits are -inf, so there is no token to choose: is every one of them "
        "masked?",
        values.size());
  }
  return values;
}

// softmax(z / temperature), in which the likeliest have exp(0) before scaling, however small the temperature.
std::vector<double> tempered(const std::vector<double>& logits, double temperature) {
  const auto likeliest = std::ranges::max_element(logits);  // the first, where there are several
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

// The ids of the n likeliest tokens, the likeliest first.
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

void keep_top_p(std::vector<double>& p, double share) {
  if (share == 1) return;
  const std::vector<std::size_t> ids = likeliest_ids(p, p.size());
  std::size_t count = 0;
  for (double total = 0; count < ids.size() && total < share; ++count) total += p[ids[count]];
  keep_only(p, std::span(ids).first(count));
}

void keep_min_p(std::vector<double>& p, double ratio) {
  const double least = ratio * *std::ranges::max_element(p);
  for (double& each : p) {
    if (each < least) each = 0;
  }
  scale_to_one(p);
}

// Generation -------------------------------------------------------------------------------------------

using Ids = std::span<const std::int64_t>;

// Logits (V,) of what follows a row of ids.
using NextLogits = std::function<Tensor(Ids ids)>;

Indices as_batch(Ids ids) { return Indices({1, static_cast<std::int64_t>(ids.size())}, ids); }

// (1, T, V) -> (V,)
Tensor last_row(const Tensor& logits) { return select(select(logits, 0, 0), 0, -1); }

std::vector<std::int64_t> continue_prompt(const NextLogits& next_logits, Ids prompt,
                                          const GenerateOptions& options, Rng& rng) {
  if (prompt.empty()) {
    fail<ValueError>(
        "[generate] the prompt is empty: begin with a start token, such as the newline before a line");
  }
  if (options.tokens < 0) fail<ValueError>("[generate] tokens is {}: it must be 0 or more", options.tokens);
  check_sampling(options.sampling);
  std::vector<std::int64_t> ids(prompt.begin(), prompt.end());
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const Tensor logits = next_logits(ids);
    if (options.stop && (*options.stop < 0 || *options.stop >= logits.numel())) {
      fail<IndexError>("[generate] stop is {}, which is outside the vocabulary of {}: it would never come",
                       *options.stop, logits.numel());
    }
    ids.push_back(sample_token(logits, options.sampling, rng));
    if (options.on_token) options.on_token(ids.back());
    if (ids.back() == options.stop) break;
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return ids;
}

}  // namespace

std::vector<double> token_probabilities(const Tensor& logits, const Sampling& sampling) {
  check_sampling(sampling);
  std::vector<double> p = tempered(checked_values(logits), sampling.temperature);
  scale_to_one(p);
  keep_top_k(p, sampling.top_k);
  keep_top_p(p, sampling.top_p);
  keep_min_p(p, sampling.min_p);
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
  return last;  // the last possible one, if rounding leaves the total below the draw
}

std::vector<std::int64_t> generate(const Gpt& model, Ids prompt, const GenerateOptions& options, Rng& rng) {
  const auto context = static_cast<std::size_t>(model.config.context);
  std::optional<Gpt::Cache> cache;
  if (options.cache) cache = model.cache(1);
  const auto next_logits = [&](Ids ids) {
    const NoGrad no_grad;
    const EvalMode inference;
    if (cache && ids.size() <= context) {
      return last_row(model.logits(as_batch(ids.subspan(static_cast<std::size_t>(cache->length))), *cache));
    }
    return last_row(model.logits(as_batch(ids.last(std::min(ids.size(), context)))));
  };
  return continue_prompt(next_logits, prompt, options, rng);
}

std::vector<std::int64_t> generate(const LanguageModel& model, std::int64_t context, Ids prompt,
                                   const GenerateOptions& options, Rng& rng) {
  if (context < 1) fail<ValueError>("[generate] context is {}: the model must see 1 id or more", context);
  const auto next_logits = [&](Ids ids) {
    const NoGrad no_grad;
    const EvalMode inference;
    const Indices seen = as_batch(ids.last(std::min(ids.size(), static_cast<std::size_t>(context))));
    const Tensor logits = model(seen);
    if (logits.rank() != 3 || logits.size(0) != 1 || logits.size(1) != seen.size(1)) {
      fail<ShapeError>("[generate] the model's logits are {}: (1, {}, V) expected for ids {}",
                       to_string(logits.shape()), seen.size(1), to_string(seen.shape()));
    }
    return last_row(logits);
  };
  return continue_prompt(next_logits, prompt, options, rng);
}

}  // namespace fovea
