#include "cases/attention_oracle.h"

#include <cmath>
#include <vector>

#include "fovea/autograd/base/rng.h"

namespace fovea::cases {
namespace {

// Whether dropout drops element (row, key) of the weights, where rows are counted through (B, H, Tq). The
// header autograd/kernels/dropout.h describes which random number decides on which element.
bool is_dropped(std::int64_t row, const ScorePlace& at, double p) {
  if (p == 0) return false;
  const std::int64_t group = row * ((at.keys + 63) / 64) + at.key / 64;
  const auto counter = static_cast<std::uint64_t>(group * 16 + at.key % 16);
  return philox(Rng(dropout_seed).next(), counter)[static_cast<std::size_t>(at.key % 64 / 16)] <
         std::ldexp(p, 32);
}

}  // namespace

bool every_key(const ScorePlace&) { return true; }
bool keys_up_to_query(const ScorePlace& at) { return at.ahead() <= 0; }

AttentionOptions AttentionVariant::with(const Inputs& in) const {
  AttentionOptions all = options;
  if (bias) all.bias = in["bias"];
  if (relative_bias) all.relative_bias = in["relative"];
  if (sinks) all.sinks = in["sinks"];
  return all;
}

double score_by_loops(const Inputs& in, const AttentionVariant& variant, const ScorePlace& at) {
  const Tensor &q = in["q"], &k = in["k"];
  const std::int64_t group = q.size(1) / k.size(1);
  double s = 0;
  for (std::int64_t d = 0; d < q.size(3); ++d) {
    s += q.at({at.batch, at.head, at.query, d}) * k.at({at.batch, at.head / group, at.key, d});
  }
  s *= variant.options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  if (const double cap = variant.options.softcap; cap > 0) s = cap * std::tanh(s / cap);
  if (variant.bias) {
    const Shape scores{q.size(0), q.size(1), at.queries, at.keys};
    s += broadcast_to(in["bias"], scores).at({at.batch, at.head, at.query, at.key});
  }
  if (variant.relative_bias) {
    const Tensor& r = in["relative"];
    s += r.at({r.size(0) == 1 ? 0 : at.head, at.key - at.query + at.queries - 1});
  }
  return s;
}

Attention attention_by_loops(const Inputs& in, const AttentionVariant& variant) {
  const Tensor &q = in["q"], &v = in["v"];
  const std::int64_t keys = v.size(2);
  const double p = variant.options.dropout;
  std::vector<double> outputs, weights;
  ScorePlace at{0, 0, 0, 0, q.size(2), keys};
  for (std::int64_t number = 0; number < q.size(0) * q.size(1) * q.size(2); ++number) {
    at.batch = number / at.queries / q.size(1);
    at.head = number / at.queries % q.size(1);
    at.query = number % at.queries;
    std::vector<double> row, kept;
    double total = variant.sinks ? std::exp(in["sinks"].at({at.head})) : 0;
    for (at.key = 0; at.key < keys; ++at.key) {
      row.push_back(variant.visible(at) ? std::exp(score_by_loops(in, variant, at)) : 0);
      kept.push_back(is_dropped(number, at, p) ? 0 : 1 / (1 - p));
      total += row.back();
    }
    for (double& weight : row) weight = total > 0 ? weight / total : 0;
    weights.insert(weights.end(), row.begin(), row.end());
    for (std::int64_t d = 0; d < v.size(3); ++d) {
      double output = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double weight = row[static_cast<std::size_t>(j)] * kept[static_cast<std::size_t>(j)];
        if (weight != 0) output += weight * v.at({at.batch, at.head / (q.size(1) / v.size(1)), j, d});
      }
      outputs.push_back(output);
    }
  }
  return {from_values(outputs, {q.size(0), q.size(1), q.size(2), v.size(3)}, f64),
          from_values(weights, {q.size(0), q.size(1), q.size(2), keys}, f64)};
}

Tensor output_and_weights(const Attention& attention) {
  return concat({attention.output, attention.weights}, -1);
}

}  // namespace fovea::cases
