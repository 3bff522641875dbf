#include "fovea/layers/positions.h"

#include <cmath>

#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {
namespace {

void check_sequence(const char* layer, const Tensor& x, std::int64_t d_model) {
  if (x.rank() < 2 || x.size(-1) != d_model) {
    fail<ShapeError>("[{}] expects x (..., T, {}), and got {}", layer, d_model, to_string(x.shape()));
  }
}

}  // namespace

Tensor sine_cosine_positions(std::int64_t length, std::int64_t d_model, Dtype dtype, std::int64_t offset) {
  Tensor positions = empty({length, d_model}, dtype);
  dispatch(dtype, [&]<class T>() {
    T* data = detail::fresh_data<T>(positions);
    for (std::int64_t c = 0; c < d_model; c += 2) {
      const double rate = std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(d_model));
      for (std::int64_t t = 0; t < length; ++t) {
        const double angle = static_cast<double>(offset + t) * rate;
        data[t * d_model + c] = static_cast<T>(std::sin(angle));
        if (c + 1 < d_model) data[t * d_model + c + 1] = static_cast<T>(std::cos(angle));
      }
    }
  });
  return positions;
}

SineCosinePositions::SineCosinePositions(std::int64_t d_model_) : d_model(d_model_) {
  check_sizes("SineCosinePositions", {d_model});
}

Tensor SineCosinePositions::operator()(const Tensor& x, std::int64_t offset) const {
  check_sequence("SineCosinePositions", x, d_model);
  return x + sine_cosine_positions(x.size(-2), d_model, x.dtype(), offset);
}

LearnedPositions::LearnedPositions(std::int64_t max_length, std::int64_t d_model, Rng& rng) {
  check_sizes("LearnedPositions", {max_length, d_model});
  table = parameter(randn({max_length, d_model}, rng));
}

Tensor LearnedPositions::operator()(const Tensor& x, std::int64_t offset) const {
  check_sequence("LearnedPositions", x, table.size(1));
  const std::int64_t end = offset + x.size(-2);
  if (offset < 0 || end > table.size(0)) {
    fail<ShapeError>(
        "[LearnedPositions] x {} has positions {} to {}, and {} are learned: shorten the sequence, or make "
        "the layer with a larger max_length",
        to_string(x.shape()), offset, end - 1, table.size(0));
  }
  return x + slice(table, 0, offset, end);
}

PositionEmbedding::PositionEmbedding(Positions positions, std::int64_t max_length, std::int64_t d_model,
                                     Rng& rng) {
  check_sizes("PositionEmbedding", {max_length, d_model});
  if (positions == Positions::learned) learned.emplace(max_length, d_model, rng);
  if (positions == Positions::sine_cosine) sine_cosine.emplace(d_model);
}

Tensor PositionEmbedding::operator()(const Tensor& x, std::int64_t offset) const {
  if (learned) return (*learned)(x, offset);
  if (sine_cosine) return (*sine_cosine)(std::sqrt(static_cast<double>(sine_cosine->d_model)) * x, offset);
  return x;
}

}  // namespace fovea
