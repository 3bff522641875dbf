// One head of self-attention, line by line, with every step an op: so Wq, Wk, Wv and Wo can be learned.

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <utility>

#include "fovea/fovea.h"

using fovea::Tensor;

// X: (T, C) input embeddings for T tokens
// Wq, Wk, Wv: (C, D) learned projections
// Wo: (D, C) output projection
std::pair<Tensor, Tensor> self_attention(const Tensor& X, const Tensor& Wq, const Tensor& Wk,
                                         const Tensor& Wv, const Tensor& Wo) {
  const std::int64_t T = X.size(0), D = Wq.size(1);

  const Tensor Q = matmul(X, Wq);  // (T, D) what each token asks
  const Tensor K = matmul(X, Wk);  // (T, D) what each token offers
  const Tensor V = matmul(X, Wv);  // (T, D) what each token gives

  const Tensor scores = matmul(Q, transpose(K)) / std::sqrt(D);  // (T, T) raw affinity, scaled

  // Position i may look at positions <= i only. The banned scores become -inf, not a large number, so that
  // softmax gives them exactly 0.
  const Tensor i = reshape(fovea::arange(T), {T, 1}), j = fovea::arange(T);
  const Tensor masked = where(j <= i, scores, -std::numeric_limits<double>::infinity());
  const Tensor A = softmax(masked);  // rows now sum to 1

  return {matmul(matmul(A, V), Wo), A};  // blended context, and the attention map for inspection
}

int main() {
  const std::int64_t T = 5, C = 7, D = 3;
  fovea::Rng rng(42);
  const fovea::SelfAttention layer(C, D, rng);
  const Tensor X = randn({T, C}, rng);

  const auto [output, A] = ::self_attention(X, layer.Wq, layer.Wk, layer.Wv, layer.Wo);
  fmt::print("Row i shows where token i looks:\n{}\n\n", A);

  // The layer that Fovea ships computes the same.
  const fovea::Attention expected = layer.with_weights(X);
  const double difference =
      fovea::max(abs(A - expected.weights)).item() + fovea::max(abs(output - expected.output)).item();
  fmt::print("Largest difference from fovea::SelfAttention: {:.1e}\n", difference);

  // And its gradient is right, for all four weights.
  const auto report = fovea::gradcheck(
      [](const fovea::Inputs& in) {
        return ::self_attention(in["X"], in["Wq"], in["Wk"], in["Wv"], in["Wo"]).first;
      },
      {{"X", X}, {"Wq", layer.Wq}, {"Wk", layer.Wk}, {"Wv", layer.Wv}, {"Wo", layer.Wo}});
  fmt::print("{}\n", to_string(report));

  return difference < 1e-5 && report.passed() ? 0 : 1;
}
