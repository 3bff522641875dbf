#include <cstdint>
#include <exception>
#include <functional>
#include <pthread.h>
#include <vector>

#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

// Chains of 1,000,000 ops, on a stack on which a recursion of a few thousand would not fit.

using namespace fovea;

namespace {

// The thread sanitizer is fifty times as slow, and what is looked for here is not what it finds.
#if defined(FOVEA_THREAD_SANITIZER)
constexpr int length = 100'000;
#else
constexpr int length = 1'000'000;
#endif
constexpr std::size_t small_stack = std::size_t{256} << 10;

// Runs f on a thread with a small stack, and hands on what it throws. Catch2 checks nothing on other threads.
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
  std::vector<double> values, gradient;
  on_small_stack([&] {
    Tensor leaf = from_values(std::vector<double>{0, 1, 2, 3, 4, 5}, {2, 3}, f64);
    leaf.set_requires_grad();
    const auto chain = [&] {
      Tensor y = leaf;
      for (int i = 0; i < length / 4; ++i) {
        y = select(reshape(transpose(reshape(y, {2, 3})), {3, 2, 1}), 2, 0);
      }
      return y;
    };
    const Tensor y = chain();
    values = y.to_vector();
    const Tensor places = from_values(std::vector<double>{0, 1, 2, 3, 4, 5}, {3, 2}, f64);
    gradient = grad({y}, {leaf}, {.gradients = {places}})[0].to_vector();
    chain();
  });
  // The value says where each element went, and the gradient where it came from.
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(gradient[static_cast<std::size_t>(values[i])] == static_cast<double>(i));
}

TEST_CASE("a chain of a million ops under create_graph") {
  // d/dx of y y + 1/4, whose gradient's graph is several times as long.
  CHECK(gradient_of_chain(
            0.5, 2, [](const Tensor& y) { return y * y + 0.25; }, true) == 1);
}

TEST_CASE("a value used 100,000 times") {
  double gradient = 0;
  on_small_stack([&] {
    Tensor leaf = scalar(1, f64);
    leaf.set_requires_grad();
    const Tensor x = leaf * 1;
    Tensor total = scalar(0, f64);
    for (int i = 0; i < 100'000; ++i) total = total + x;
    gradient = grad({total}, {leaf})[0].item();
  });
  CHECK(gradient == 100'000);
}
