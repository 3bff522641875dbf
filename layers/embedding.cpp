#include "fovea/layers/embedding.h"

#include "layers/init.h"

namespace fovea {
namespace {

// (V, 1): true for every row of the table but that of the padding id.
Bool all_but(std::int64_t padding, std::int64_t vocabulary) {
  return Bool({vocabulary, 1}, [&](std::uint8_t* out) {
    for (std::int64_t v = 0; v < vocabulary; ++v) out[v] = v != padding;
  });
}

}  // namespace

Embedding::Embedding(std::int64_t vocabulary, std::int64_t d_model, Rng& rng, const EmbeddingOptions& options)
    : padding(options.padding) {
  check_sizes("Embedding", {vocabulary, d_model});
  Tensor initial = randn({vocabulary, d_model}, rng);
  if (padding) {
    if (*padding < 0 || *padding >= vocabulary) {
      fail<IndexError>("[Embedding] the padding id {} is outside the vocabulary of {}", *padding, vocabulary);
    }
    initial = where(all_but(*padding, vocabulary), initial, 0.0);
  }
  table = parameter(initial);
}

Tensor Embedding::operator()(const Indices& ids) const { return embedding(table, ids, {.padding = padding}); }

Tensor Embedding::as_output(const Tensor& x) const {
  const Tensor kept = padding ? where(all_but(*padding, table.size(0)), table, 0.0) : table;
  return matmul(x, transpose(kept));
}

}  // namespace fovea
