#include "fovea/autograd/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "autograd/base/parallel.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// Sets the number of threads, and puts it back.
class Threads {
 public:
  explicit Threads(int n) : before_(threads()) { set_threads(n); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// The value and the gradients of f(x, w), all elements in a row.
template <class F>
std::vector<double> bits_of(const F& f, const Shape& of_x, const Shape& of_w, Dtype dtype) {
  Rng rng(3);
  Tensor x = randn(of_x, rng, dtype), w = randn(of_w, rng, dtype);
  x.set_requires_grad();
  w.set_requires_grad();
  const Tensor y = f(x, w);
  std::vector<double> all = y.to_vector();
  for (const Tensor& gradient :
       grad({y}, {x, w}, {.gradients = {randn(y.shape(), rng, dtype)}, .allow_unused = true})) {
    const std::vector<double> values = gradient.to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

template <class F>
void same_for_any_number_of_threads(const F& f, const Shape& of_x, const Shape& of_w) {
  for (const Dtype dtype : {f32, f64}) {
    std::vector<double> one;
    {
      const Threads scope(1);
      one = bits_of(f, of_x, of_w, dtype);
    }
    for (const int n : {2, 3, 64}) {
      const Threads scope(n);
      // Compared as a whole: a report of a million differing elements helps nobody.
      INFO(name_of(dtype) << ", " << n << " threads");
      CHECK((bits_of(f, of_x, of_w, dtype) == one));
    }
  }
}

}  // namespace

// Sizes are such that each op is cut into several pieces, the last of which is shorter.

TEST_CASE("elementwise ops give the same bits for any number of threads") {
  same_for_any_number_of_threads(
      [](const Tensor& x, const Tensor& w) { return tanh(x * w) + exp(w) / (1 + x * x); }, {307, 503}, {503});
}

TEST_CASE("reductions give the same bits for any number of threads") {
  const auto over = [](const Axes& axes) {
    return [axes](const Tensor& x, const Tensor& w) {
      return sum(x * w, axes) + logsumexp(x, axes) + max(x, axes);
    };
  };
  same_for_any_number_of_threads(over({0, 1}), {307, 503}, {503});
  same_for_any_number_of_threads(over(0), {307, 503}, {503});
  same_for_any_number_of_threads(over(1), {307, 503}, {503});
  same_for_any_number_of_threads(over({0, 2}), {29, 53, 101}, {101});
}

TEST_CASE("matrix products give the same bits for any number of threads") {
  const auto product = [](const Tensor& x, const Tensor& w) { return matmul(x, w); };
  same_for_any_number_of_threads(product, {307, 211}, {211, 101});        // many rows
  same_for_any_number_of_threads(product, {7, 211}, {211, 3001});         // many columns
  same_for_any_number_of_threads(product, {11, 100'003}, {100'003, 7});   // a long inner size
  same_for_any_number_of_threads(product, {197, 29, 31}, {197, 31, 37});  // a large batch
  same_for_any_number_of_threads(product, {197, 29, 31}, {31, 37});
}

TEST_CASE("fused ops give the same bits for any number of threads") {
  same_for_any_number_of_threads([](const Tensor& x, const Tensor& w) { return softmax(x * w); }, {503, 307},
                                 {307});
  same_for_any_number_of_threads([](const Tensor& x, const Tensor& w) { return softmax(x * w, 0); },
                                 {503, 307}, {307});
  same_for_any_number_of_threads([](const Tensor& x, const Tensor& w) { return log_softmax(x * w); },
                                 {503, 307}, {307});
  same_for_any_number_of_threads([](const Tensor& x, const Tensor& w) { return layer_norm(x, w, w); },
                                 {503, 307}, {307});
  same_for_any_number_of_threads([](const Tensor& x, const Tensor& w) { return rms_norm(x, w); }, {503, 307},
                                 {307});
  same_for_any_number_of_threads(
      [](const Tensor& x, const Tensor& w) { return rotary(x * w, {.offset = 11}); }, {503, 308}, {308});
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 5003; ++i) ids.push_back(i * i % 307);
  const Indices indices({5003}, ids);
  same_for_any_number_of_threads([&](const Tensor& x, const Tensor& w) { return embedding(x, indices) * w; },
                                 {307, 53}, {53});
  same_for_any_number_of_threads(
      [&](const Tensor& x, const Tensor& w) {
        return cross_entropy(x * w, indices, {.ignore_index = 4}).loss;
      },
      {5003, 307}, {307});
  same_for_any_number_of_threads(
      [&](const Tensor& x, const Tensor& w) {
        const Tensor weights = arange(307, x.dtype());
        return cross_entropy(x * w, indices,
                             {.label_smoothing = 0.1, .class_weights = weights, .z_loss = 1e-3})
            .loss;
      },
      {5003, 307}, {307});
  same_for_any_number_of_threads(
      [](const Tensor& x, const Tensor& w) { return attention(x * w, x, x, {.mask = Mask::causal()}); },
      {3, 5, 101, 17}, {17});
}

TEST_CASE("copies and joins give the same bits for any number of threads") {
  same_for_any_number_of_threads(
      [](const Tensor& x, const Tensor& w) {
        return concat({transpose(x), slice(transpose(x), 0, 0, 503, 2) * w}, 0);
      },
      {307, 503}, {307});
}

TEST_CASE("the number of threads is a positive number") {
  const Threads scope(3);
  CHECK(threads() == 3);
  CHECK_THROWS_AS(set_threads(0), ValueError);
  CHECK_THROWS_WITH(set_threads(-1), ContainsSubstring("[set_threads]") && ContainsSubstring("at least 1"));
  CHECK(threads() == 3);
}

TEST_CASE("parallel_for visits every element once, in chunks that do not depend on the threads") {
  for (const int n : {1, 2, 64}) {
    const Threads scope(n);
    for (const std::int64_t size : {0, 1, 99, 100, 101, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(size));
      std::atomic<bool> aligned{true};
      kernels::parallel_for(size, 100, [&](std::int64_t begin, std::int64_t end) {
        if (begin % 100 != 0 || (end != size && end - begin != 100)) aligned = false;
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      CHECK(aligned);
      for (const std::atomic<int>& count : visits) CHECK(count == 1);
    }
  }
}

TEST_CASE("parallel_for rethrows the exception of the earliest chunk") {
  for (const int n : {1, 3}) {
    const Threads scope(n);
    const auto failing = [](std::int64_t from) {
      kernels::parallel_for(10, 1, [=](std::int64_t i, std::int64_t) {
        if (i >= from) throw std::out_of_range("piece " + std::to_string(i));
      });
    };
    CHECK_THROWS_AS(failing(4), std::out_of_range);
    CHECK_THROWS_WITH(failing(4), "piece 4");
    CHECK_NOTHROW(failing(10));
  }
}

TEST_CASE("parallel_for may be called from inside a chunk, and from several threads at once") {
  const Threads scope(4);
  std::atomic<int> count{0};
  const auto nested = [&] {
    kernels::parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
      kernels::parallel_for(8, 1, [&](std::int64_t, std::int64_t) { ++count; });
    });
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(nested);
  for (std::thread& caller : callers) caller.join();
  CHECK(count == 3 * 64);
}
