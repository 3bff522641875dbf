#include "fovea/train/generate/generate.h"

#include <algorithm>
#include <optional>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "train/generate/check_sampling.h"

namespace fovea {
namespace {

using Ids = std::span<const std::int64_t>;

// The logits (V,) of the token that follows a row of ids.
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
  if (options.tokens < 0) fail<ValueError>("[generate] tokens is {}: it must be at least 0", options.tokens);
  detail::check_sampling(options.sampling);
  std::vector<std::int64_t> ids(prompt.begin(), prompt.end());
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const Tensor logits = next_logits(ids);
    if (options.stop && (*options.stop < 0 || *options.stop >= logits.numel())) {
      fail<IndexError>(
          "[generate] stop is {}, which is outside the vocabulary of {}: it would never be chosen",
          *options.stop, logits.numel());
    }
    ids.push_back(sample_token(logits, options.sampling, rng));
    if (options.on_token) options.on_token(ids.back());
    if (ids.back() == options.stop) break;
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return ids;
}

// Makes room for the ids, and for as many to come, but for no more than the context.
void reserve(Gpt::Cache& cache, std::size_t ids, std::size_t context) {
  for (KvCache& block : cache.blocks) {
    if (block.capacity() < static_cast<std::int64_t>(ids))
      block.reserve(static_cast<std::int64_t>(std::min(2 * ids, context)));
  }
}

}  // namespace

std::vector<std::int64_t> generate(const Gpt& model, Ids prompt, const GenerateOptions& options, Rng& rng) {
  const auto context = static_cast<std::size_t>(model.config.context);
  // The cache grows with what is generated: a context may be far longer.
  std::optional<Gpt::Cache> cache;
  if (options.cache) cache = model.cache(1, 0);
  const auto next_logits = [&](Ids ids) {
    const NoGrad no_grad;
    const EvalMode inference;
    if (cache && ids.size() <= context) {
      reserve(*cache, ids.size(), context);
      return last_row(model.logits(as_batch(ids.subspan(static_cast<std::size_t>(cache->length))), *cache));
    }
    return last_row(model.logits(as_batch(ids.last(std::min(ids.size(), context)))));
  };
  return continue_prompt(next_logits, prompt, options, rng);
}

std::vector<std::int64_t> generate(const LanguageModel& model, std::int64_t context, Ids prompt,
                                   const GenerateOptions& options, Rng& rng) {
  if (context < 1) fail<ValueError>("[generate] context is {}: the model must see at least 1 id", context);
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
