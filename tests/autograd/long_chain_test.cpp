#include <cstdint>
#include <functional>
#include <pthread.h>

#include "fovea/autograd/graph.h"
#include "fovea/autograd/memory.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// Chains of 1,000,000 ops, on a stack on which a recursion of a few thousand would not fit.

using namespace fovea;

namespace {

constexpr int length = 1'000'000;
constexpr std::size_t small_stack = std::size_t{256} << 10;

// Runs f on a thread with a small stack, and hands on what it throws.
void on_small_stack(const std::function<void()>& f) {
  struct Call {
    const std::function<void()>& f;
    std::exception_ptr failure;
  } call{f, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, small_stack);
  pthread_t thread;
  const auto run = [](void* context) -> void* {
    auto& self = *static_cast<Call*>(context);
    try {
      self.f();
    } catch (...) {
      self.failure = std::current_exception();
    }
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &call) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (call.failure) std::rethrow_exception(call.failure);
}

// The gradient at x of `step` applied until there are `length` ops; another such chain is destroyed unused.
// All that was live before is live after, and no more.
double gradient_of_chain(double x, int ops_per_step, const std::function<Tensor(const Tensor&)>& step,
                         bool create_graph = false) {
  double gradient = 0;
  const std::int64_t before = memory().live_bytes;
  on_small_stack([&] {
    Tensor leaf = scalar(x, f64);
    leaf.set_requires_grad();
    const auto chain = [&] {
      Tensor y = leaf;
      for (int i = 0; i < length / ops_per_step; ++i) y = step(y);
      return y;
    };
    {
      const Tensor y = chain();
      gradient = grad({y}, {leaf}, {.create_graph = create_graph})[0].item();
    }
    chain();
  });
  CHECK(memory().live_bytes == before);
  return gradient;
}

}  // namespace

TEST_CASE("a chain of a million adds") {
  const Tensor b = scalar(1, f64);
  CHECK(gradient_of_chain(0, 1, [&](const Tensor& y) { return y + b; }) == 1);
}

TEST_CASE("a chain of a million ops with exp, which saves its output") {
  // exp(y - 1) has value and derivative 1 at 1.
  CHECK(gradient_of_chain(1, 2, [](const Tensor& y) { return exp(y - 1); }) == 1);
}

TEST_CASE("a chain of a million ops with x x, which saves its input") {
  // y y + 1/4 has value 1/2 and derivative 1 at 1/2.
  CHECK(gradient_of_chain(0.5, 2, [](const Tensor& y) { return y * y + 0.25; }) == 1);
}

TEST_CASE("a chain of a million alternating views") {
  on_small_stack([] {
    Tensor leaf = from_values(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}, f64);
    leaf.set_requires_grad();
    const auto chain = [&] {
      Tensor y = leaf;
      for (int i = 0; i < length / 4; ++i)
        y = select(reshape(transpose(reshape(y, {2, 3})), {3, 2, 1}), 2, 0);
      return y;
    };
    const Tensor u = from_values(std::vector<double>{1, 2, 3, 4, 5, 6}, {3, 2}, f64);
    const Tensor y = chain();
    // A transposition of (2, 3) is undone by as many as it takes for the permutation to come round; both
    // chains permute alike, so the values find out where each gradient came from.
    const std::vector<double> values = y.to_vector();
    const std::vector<double> gradient = grad({y}, {leaf}, {.gradients = {u}})[0].to_vector();
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(gradient[static_cast<std::size_t>(values[i]) - 1] == static_cast<double>(i + 1));
    }
    chain();
  });
}

TEST_CASE("a chain of a million ops under create_graph") {
  // d/dx of y y + 1/4, whose gradient's graph is several times as long.
  CHECK(gradient_of_chain(
            0.5, 2, [](const Tensor& y) { return y * y + 0.25; }, true) == 1);
}

TEST_CASE("a wide graph: one value used 100,000 times") {
  on_small_stack([] {
    Tensor leaf = scalar(1, f64);
    leaf.set_requires_grad();
    const Tensor x = leaf * 1;
    Tensor total = scalar(0, f64);
    for (int i = 0; i < 100'000; ++i) total = total + x;
    CHECK(grad({total}, {leaf})[0].item() == 100'000);
  });
}
