#include <cmath>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("cross_entropy is the sum over kept targets divided by their number") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  const Tensor logits = randn({2, 3, 5}, rng, dtype);
  const Indices targets{{1, -1, 4}, {0, 2, -1}};
  const CrossEntropy mean = cross_entropy(logits, targets, {.ignore_index = -1});
  const CrossEntropy total =
      cross_entropy(logits, targets, {.ignore_index = -1, .reduction = Reduction::sum});
  const CrossEntropy each =
      cross_entropy(logits, targets, {.ignore_index = -1, .reduction = Reduction::none});
  CHECK(mean.count == 4);
  CHECK(total.count == 4);
  CHECK(each.count == 4);
  CHECK(mean.loss.shape() == Shape{});
  CHECK(each.loss.shape() == Shape{2, 3});
  CHECK(each.loss.at({0, 1}) == 0);
  CHECK(each.loss.at({1, 2}) == 0);
  CHECK(sum(each.loss).item() == Approx(total.loss.item()));
  CHECK(mean.loss.item() == Approx(total.loss.item() / 4));
  const Tensor p = softmax(logits);
  CHECK(each.loss.at({0, 0}) == Approx(-std::log(p.at({0, 0, 1}))));
  CHECK(each.loss.at({1, 1}) == Approx(-std::log(p.at({1, 1, 2}))));
}

TEST_CASE("if all targets are ignored the loss and its gradient are 0, and the count says so") {
  const Dtype dtype = GENERATE(f32, f64);
  const Reduction reduction = GENERATE(Reduction::mean, Reduction::sum, Reduction::none);
  Rng rng(3);
  Tensor logits = randn({3, 5}, rng, dtype);
  logits.set_requires_grad();
  const CrossEntropy result = cross_entropy(logits, {7, 7, 7}, {.ignore_index = 7, .reduction = reduction});
  CHECK(result.count == 0);
  CHECK(result.loss.to_vector() == Values(reduction == Reduction::none ? 3 : 1, 0));
  backward(result.loss, {.gradient = ones(result.loss.shape(), dtype)});
  CHECK(logits.grad().to_vector() == Values(15, 0));
}

TEST_CASE("no targets at all are a loss of 0") {
  const CrossEntropy result = cross_entropy(zeros({0, 5}), Indices());
  CHECK(result.count == 0);
  CHECK(result.loss.item() == 0);
}

TEST_CASE("an ignored target may also be an id of the vocabulary") {
  const CrossEntropy result = cross_entropy(zeros({3, 5}), {0, 1, 0}, {.ignore_index = 0});
  CHECK(result.count == 1);
  CHECK(result.loss.item() == Approx(std::log(5)));
}

TEST_CASE("a target outside the vocabulary is an error with position, value and limit") {
  const Tensor logits = zeros({2, 3, 5});
  const auto with = [&](const Indices& targets) {
    return cross_entropy(logits, targets, {.ignore_index = -100});
  };
  CHECK_THROWS_AS(with({{0, 1, 2}, {3, 4, 5}}), IndexError);
  CHECK_THROWS_WITH(with({{0, 1, 2}, {3, 4, 5}}),
                    ContainsSubstring("[cross_entropy]") && ContainsSubstring("target 5") &&
                        ContainsSubstring("(1, 2)") && ContainsSubstring("vocabulary of 5"));
  CHECK_THROWS_WITH(with({{0, -1, 2}, {3, 4, -100}}),
                    ContainsSubstring("target -1") && ContainsSubstring("(0, 1)"));
  CHECK_NOTHROW(with({{0, -100, 2}, {3, 4, -100}}));
}

TEST_CASE("cross_entropy of uniform logits is ln V, and of certain ones nearly 0") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(cross_entropy(zeros({7, 65}, dtype), {0, 1, 2, 3, 4, 5, 64}).loss.item() == Approx(std::log(65)));
  CHECK(cross_entropy(100 * eye(3, dtype), {0, 1, 2}).loss.item() == Approx(0).margin(1e-12));
  CHECK(cross_entropy(-100 * eye(2, dtype), {0, 1}).loss.item() == Approx(100));
}

TEST_CASE("cross_entropy, log_softmax and logsumexp keep the digits of a prediction that is nearly certain") {
  const Dtype dtype = GENERATE(f32, f64);
  const double digits = dtype == f32 ? 3e-7 : 1e-15;
  for (const double gap : {3, 17, 19, 40, 85}) {
    Tensor logits = tensor({-gap, 0, -gap}, dtype).set_requires_grad();
    const double exact = std::log1p(2 * std::exp(-gap)), share = std::exp(-gap) / (1 + 2 * std::exp(-gap));
    const Tensor loss = cross_entropy(reshape(logits, {1, 3}), {1}).loss;
    INFO("gap " << gap);
    CHECK(loss.item() == Approx(exact).epsilon(digits).margin(0));
    CHECK(log_softmax(logits).at({1}) == Approx(-exact).epsilon(digits).margin(0));
    CHECK(logsumexp(logits, 0).item() == Approx(exact).epsilon(digits).margin(0));
    const Values gradient = grad({loss}, {logits})[0].to_vector();
    CHECK(gradient[0] == Approx(share).epsilon(digits).margin(0));
    CHECK(gradient[1] == Approx(-2 * share).epsilon(gap > 10 ? digits : 20 * digits).margin(0));
  }
}

TEST_CASE("cross_entropy's gradient is (p - onehot) / count") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(5);
  Tensor logits = randn({3, 5}, rng, dtype);
  logits.set_requires_grad();
  backward(cross_entropy(logits, {4, -1, 0}, {.ignore_index = -1}).loss);
  const Tensor p = softmax(logits.detach());
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      const double hit = (i == 0 && j == 4) || (i == 2 && j == 0) ? 1 : 0;
      CHECK(logits.grad().at({i, j}) == Approx(i == 1 ? 0 : (p.at({i, j}) - hit) / 2).margin(1e-7));
    }
  }
}

TEST_CASE("ignored targets are as if their rows were not there, with every option") {
  const Reduction reduction = GENERATE(Reduction::mean, Reduction::sum);
  Rng rng(7);
  Tensor all = randn({7, 5}, rng, f64);
  all.set_requires_grad();
  const Tensor kept = concat({slice(all, 0, 0, 2), slice(all, 0, 3, 6)}, 0);
  CrossEntropyOptions options{.reduction = reduction,
                              .label_smoothing = 0.1,
                              .class_weights = tensor({0.5, 2, 3, 0, 0.25}, f64),
                              .z_loss = 0.01};
  const CrossEntropy without = cross_entropy(kept, {4, 2, 3, 1, 2}, options);
  options.ignore_index = -100;
  const CrossEntropy with = cross_entropy(all, {4, 2, -100, 3, 1, 2, -100}, options);
  CHECK(with.loss.item() == without.loss.item());
  CHECK(with.count == 5);
  CHECK(with.divisor == 0.25 + 3 + 0 + 2 + 3);
  CHECK(without.divisor == with.divisor);
  CHECK(grad({with.loss}, {all})[0].to_vector() == grad({without.loss}, {all})[0].to_vector());
}

TEST_CASE("class weights of one common size change the sum and not the mean") {
  Rng rng(7);
  const Tensor logits = randn({3, 5}, rng, f64);
  const auto with = [&](Reduction reduction, double weight) {
    return cross_entropy(logits, {4, 0, 2},
                         {.reduction = reduction,
                          .label_smoothing = 0.1,
                          .class_weights = full({5}, weight, f64),
                          .z_loss = 0.01})
        .loss.item();
  };
  CHECK(with(Reduction::mean, 3) == Approx(with(Reduction::mean, 1)));
  CHECK(with(Reduction::sum, 3) == Approx(3 * with(Reduction::sum, 1)));
}

// PyTorch 1.13: cross_entropy(x, t, weight=w, ignore_index=1, label_smoothing=0.2, reduction=...).
TEST_CASE("smoothing, weights and ignored targets together are PyTorch's") {
  Tensor logits = tensor({{0.5, -1, 2}, {1, 0, -0.25}, {-2, 1.5, 0.75}}, f64);
  logits.set_requires_grad();
  CrossEntropyOptions options{
      .ignore_index = 1, .label_smoothing = 0.2, .class_weights = tensor({0.5, 2, 1.5}, f64)};
  const Tensor loss = cross_entropy(logits, {0, 1, 2}, options).loss;
  CHECK(loss.item() == Approx(1.449863921338821).epsilon(1e-12));
  const Values gradient = grad({loss}, {logits})[0].to_vector();
  const Values expected{-0.1582365359533211,   -0.05362914224310418, 0.21186567819642527, 0.0, 0.0, 0.0,
                        -0.001928692920552235, 0.42138799489125445,  -0.4194593019707023};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(gradient[i] == Approx(expected[i]).margin(1e-12));
}

TEST_CASE("the loss of a large vocabulary holds no probabilities beside its gradient") {
  Rng rng(7);
  Tensor logits = randn({13, 50'021}, rng);
  logits.set_requires_grad();
  const Indices targets = argmax(logits);
  const std::int64_t bytes = logits.numel() * std::int64_t{sizeof(float)};
  const std::int64_t before = memory().live_bytes;
  reset_peak_memory();
  const Tensor loss = cross_entropy(logits, targets).loss;
  CHECK(memory().peak_bytes - before < bytes / 2);
  backward(loss);
  CHECK(memory().peak_bytes - before < bytes * 3 / 2);
}
