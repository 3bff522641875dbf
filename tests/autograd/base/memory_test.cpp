#include "fovea/autograd/base/memory.h"

#include <sys/resource.h>

#include <thread>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

using namespace fovea;

namespace {

Tensor leaf(Tensor x) { return x.set_requires_grad(); }

// A loop like one that trains: two layers, attention, a loss, and a step down the gradient.
class Loop {
 public:
  Loop()
      : table_(leaf(randn({7, 5}, rng_))),
        Wq_(leaf(randn({5, 3}, rng_))),
        Wk_(leaf(randn({5, 3}, rng_))),
        Wv_(leaf(randn({5, 3}, rng_))),
        Wo_(leaf(randn({3, 5}, rng_))) {}

  void step() {
    const Indices ids{{1, 2, 3, 4}, {6, 5, 0, 2}};
    const Indices targets{{2, 3, 4, 5}, {5, 0, 2, 1}};
    const Tensor x = layer_norm(embedding(table_, ids));
    const Tensor y = x + self_attention(x, Wq_, Wk_, Wv_, Wo_).output;
    const Tensor loss = cross_entropy(matmul(gelu(y), transpose(table_)), targets).loss;
    backward(loss);
    for (Tensor* parameter : {&table_, &Wq_, &Wk_, &Wv_, &Wo_}) {
      const std::vector<double> gradient = parameter->grad().to_vector();
      float* data = parameter->mutable_data<float>();
      for (std::size_t i = 0; i < gradient.size(); ++i) data[i] -= 0.1f * static_cast<float>(gradient[i]);
      parameter->set_grad({});
    }
  }

 private:
  Rng rng_{3};
  Tensor table_, Wq_, Wk_, Wv_, Wo_;
};

}  // namespace

TEST_CASE("live bytes are those of the tensors that exist") {
  const std::int64_t before = memory().live_bytes;
  {
    const Tensor x = zeros({1000, 1000});
    const std::int64_t with_x = memory().live_bytes - before;
    CHECK(with_x >= 4'000'000);
    CHECK(with_x < 4'001'000);
    const Tensor view = transpose(x);
    CHECK(memory().live_bytes - before < 4'002'000);
    const Tensor copy = clone(view);
    CHECK(memory().live_bytes - before >= 8'000'000);
    const Bool truth = x > 0.0;
    CHECK(memory().live_bytes - before >= 9'000'000);
  }
  CHECK(memory().live_bytes == before);
}

TEST_CASE("peak bytes are the most that were live since the last reset") {
  reset_peak_memory();
  const std::int64_t before = memory().live_bytes;
  CHECK(memory().peak_bytes == before);
  { const Tensor x = zeros({1000, 1000}); }
  CHECK(memory().peak_bytes >= before + 4'000'000);
  CHECK(memory().live_bytes == before);
  reset_peak_memory();
  CHECK(memory().peak_bytes == before);
}

TEST_CASE("a chain under NoGrad keeps nothing but its last value") {
  const Tensor w = leaf(ones({250, 1000}));
  NoGrad off;
  Tensor x = w;
  reset_peak_memory();
  const std::int64_t before = memory().live_bytes;
  for (int i = 0; i < 10; ++i) x = tanh(x * 0.5);
  CHECK(memory().peak_bytes - before < 3'100'000);
}

TEST_CASE("backward releases what was saved, as it goes") {
  const std::int64_t before = memory().live_bytes;
  Tensor x = leaf(ones({250, 1000}));
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = exp(-y);
  const Tensor loss = sum(y);
  y = {};
  const std::int64_t forward = memory().live_bytes - before;
  CHECK(forward > 11'000'000);
  reset_peak_memory();
  backward(loss);
  // A cotangent or two at a time, and no more than that beyond what the forward pass had.
  CHECK(memory().peak_bytes - before < forward + 3'100'000);
  // What is left is x, its gradient, and little else.
  CHECK(memory().live_bytes - before < 2'010'000);
}

TEST_CASE("splitting q, k and v costs their size once") {
  const Tensor x = leaf(ones({1, 300'000}));
  constexpr std::int64_t pieces = 100;
  Tensor total = zeros({1, 3000});
  for (const Tensor& piece : split(x, 1, pieces)) total = total + piece;
  const Tensor loss = sum(total);
  reset_peak_memory();
  const std::int64_t before = memory().live_bytes;
  backward(loss);
  CHECK(memory().peak_bytes - before < 3 * 1'200'000);
}

TEST_CASE("live bytes are the same after 100 steps and after many more") {
  Loop loop;
  for (int i = 0; i < 100; ++i) loop.step();
  const std::int64_t after_100 = memory().live_bytes;
  for (int i = 100; i < 10'000; ++i) loop.step();
  CHECK(memory().live_bytes == after_100);
}

TEST_CASE("a gradient that has a graph of its own is released with its leaf") {
  const std::int64_t before = memory().live_bytes;
  {
    const Tensor x = leaf(ones({37, 37}));
    const Tensor w = leaf(ones({37, 37}));
    backward(sum(x * x * w * w), {.create_graph = true});
    CHECK(x.grad().requires_grad());
    backward(sum(x.grad() * w.grad()), {.create_graph = true});
  }
  CHECK(memory().live_bytes == before);
}

TEST_CASE("a leaf that is gone before its graph keeps no gradient") {
  const std::int64_t before = memory().live_bytes;
  {
    const Tensor w = leaf(ones({37, 37}));
    Tensor y;
    {
      const Tensor x = leaf(ones({37, 37}));
      y = sum(x * x * w);
    }
    // The gradient of x would hold the graph that holds x's place in it.
    backward(y, {.create_graph = true});
    CHECK(w.grad().defined());
  }
  CHECK(memory().live_bytes == before);
}

TEST_CASE("memory freed by another thread is counted") {
  const std::int64_t before = memory().live_bytes;
  Tensor x = leaf(ones({37, 37}));
  Tensor y = exp(x) * x;
  std::thread([moved = std::move(y)]() mutable { moved = {}; }).join();
  std::thread([&x] {
    for (int i = 0; i < 1000; ++i) x = leaf(ones({37, 37}));
  }).join();
  x = {};
  CHECK(memory().live_bytes == before);
}

TEST_CASE("cached memory can be given back") {
  { const Tensor x = zeros({1000, 1000}); }
  const std::int64_t before = memory().cached_bytes;
  release_cached_memory();
  // The address sanitizer's build caches nothing.
  CHECK((before == 0 || memory().cached_bytes <= before - 4'000'000));
  const Tensor x = ones({1000, 1000});
  CHECK(x.at({999, 999}) == 1);
}

// The sanitizers ask the system for memory of their own.
#if !defined(FOVEA_ADDRESS_SANITIZER) && !defined(FOVEA_THREAD_SANITIZER)
TEST_CASE("a warm step asks the system for nothing") {
  Loop loop;
  for (int i = 0; i < 100; ++i) loop.step();
  const auto page_faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  };
  const auto before = page_faults();
  for (int i = 0; i < 1000; ++i) loop.step();
  CHECK(page_faults() - before <= 100);
}
#endif
