// A training loop written by hand: one attention head learns to copy the token three places back.

#include <fmt/core.h>

#include "fovea/fovea.h"

using namespace fovea;

// [model]
struct Model {
  Embedding embedding;
  SineCosinePositions positions;
  SelfAttention attention;
  Linear head;

  Model(std::int64_t vocabulary, std::int64_t channels, Rng& rng)
      : embedding(vocabulary, channels, rng),
        positions(channels),
        attention(channels, channels, rng),
        head(channels, vocabulary, rng) {}

  Tensor operator()(const Indices& ids) const {  // (B, T) -> (B, T, V)
    const Tensor x = positions(embedding(ids));
    return head(x + attention(x));
  }

  static void visit(const Model& self, Visitor& v) {
    v("embedding", self.embedding);
    v("positions", self.positions);
    v("attention", self.attention);
    v("head", self.head);
  }
};
// [model]

int main() {
  constexpr std::int64_t batch = 32, time = 12, vocabulary = 11, distance = 3;
  Rng rng(1);
  const Model model(vocabulary, 32, rng);

  // [loop]
  AdamW optimizer(named_parameters(model), {.learning_rate = 1e-2});
  double loss_now = 0;
  for (int step = 1; step <= 400; ++step) {
    const Indices ids({batch, time}, [&](std::int64_t* out) {
      for (std::int64_t i = 0; i < batch * time; ++i) out[i] = rng.uniform_int(vocabulary);
    });
    const Indices targets({batch, time}, [&](std::int64_t* out) {
      for (std::int64_t i = 0; i < batch * time; ++i) out[i] = i % time < distance ? -1 : ids[i - distance];
    });

    const Tensor loss = cross_entropy(model(ids), targets, {.ignore_index = -1}).loss;
    backward(loss);
    clip_gradients(optimizer.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();

    loss_now = loss.item();
    if (step % 50 == 0) fmt::print("step {:3}  loss {:.4f} nats a token\n", step, loss_now);
  }
  // [loop]
  return loss_now < 0.05 ? 0 : 1;
}
