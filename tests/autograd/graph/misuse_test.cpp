#include <atomic>
#include <thread>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/derivatives.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// Ops and callers that break their contract: every one of them gets an error, and the graph stays whole.

using namespace fovea;

namespace {

using Values = std::vector<double>;

Tensor leaf(Tensor x) { return x.set_requires_grad(); }

// An op that gives x itself, with that rule.
template <class Rule>
Tensor identity(const Tensor& x, const Rule& rule) {
  return record("probe", clone(x.detach()), {x}, {x}, rule);
}

template <class Rule>
void refuses(const Rule& rule, const char* text) {
  const Tensor x = leaf(tensor({2, 3, 5}, f64));
  const Tensor y = identity(x, rule);
  CHECK_THROWS_WITH(backward(sum(y)), ContainsSubstring("[probe]") && ContainsSubstring(text));
  CHECK_FALSE(x.grad().defined());
}

}  // namespace

TEST_CASE("of two passes on two threads that would both free a trunk, one at most goes through") {
  for (int i = 0; i < 200; ++i) {
    const Tensor x = leaf(full({37}, 2, f64));
    Tensor trunk = x;
    for (int k = 0; k < 11; ++k) trunk = trunk * 1.0 + 0.0;
    const Tensor branches[] = {sum(trunk * 3), sum(trunk * 3)};
    std::atomic<int> passed = 0, refused = 0, ready = 0;
    std::vector<std::thread> workers;
    workers.reserve(2);
    for (const Tensor& branch : branches) {
      workers.emplace_back([&] {
        for (++ready; ready < 2;) {
        }
        try {
          backward(branch);
          ++passed;
        } catch (const GraphError&) {
          ++refused;
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    REQUIRE(passed == 1);
    REQUIRE(refused == 1);
    REQUIRE(x.grad().to_vector() == Values(37, 3));
  }
}

TEST_CASE("passes on several threads through a trunk that all of them retain lose no gradient") {
  const Tensor x = leaf(full({37}, 2, f64));
  const Tensor trunk = x * x;
  constexpr int threads = 3, passes = 100;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < passes; ++i) backward(sum(trunk * 3), {.retain_graph = true});
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(x.grad().to_vector() == Values(37, 12.0 * threads * passes));
}

TEST_CASE("a rule that runs backward through its own op, or through a pass around it, is refused") {
  const bool retain = GENERATE(false, true);
  const Tensor x = leaf(tensor({2, 3, 5}, f64));
  Tensor output;
  const Tensor y = identity(x * x, [&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
    backward(output, {.retain_graph = retain});
    return {dy};
  });
  output = sum(y);
  CHECK_THROWS_AS(backward(output, {.retain_graph = retain}), GraphError);
  CHECK_FALSE(x.grad().defined());

  // The graph is as it was, so the next pass meets the rule again, and nothing that was freed.
  CHECK_THROWS_WITH(backward(output, {.retain_graph = true}), !ContainsSubstring("freed"));
  output = {};  // the rule holds it by reference
}

TEST_CASE("a pass that throws leaves the graph open to the next") {
  const Tensor x = leaf(tensor({2, 3, 5}, f64));
  bool broken = true;
  const Tensor y = identity(x, [&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
    if (broken) throw ValueError("broken");
    return {dy};
  });
  const Tensor loss = sum(y * y);
  CHECK_THROWS_AS(backward(loss), ValueError);
  broken = false;
  backward(loss);
  CHECK(x.grad().to_vector() == Values{4, 6, 10});
  CHECK_THROWS_WITH(backward(loss), ContainsSubstring("freed"));
}

TEST_CASE("a rule that asks for what it does not have is refused") {
  refuses([](const Saved& saved, const Tensor&, const NeedsGradient&) -> Gradients { return {saved[3]}; },
          "saved tensor 3");
  refuses([](const Saved&, const Tensor& dy,
             const NeedsGradient& needs) -> Gradients { return {needs[1] ? dy : dy}; },
          "input 1");
  refuses([](const Saved&, const Tensor&,
             const NeedsGradient& needs) -> Gradients { return {zeros(needs.shape(7), f64)}; },
          "input 7");
  const Tensor x = leaf(ones({3})), fixed = ones({3});
  const Tensor y = record("probe", x * 1.0, {x, fixed}, {},
                          [](const Saved&, const Tensor&, const NeedsGradient& needs) -> Gradients {
                            return {zeros(needs.shape(1)), {}};
                          });
  CHECK_THROWS_WITH(backward(sum(y)), ContainsSubstring("input 1") && ContainsSubstring("no gradient"));
}

TEST_CASE("a region that is not inside its input, or meets itself, is refused") {
  const bool differentiable = GENERATE(false, true);
  const Tensor x = leaf(zeros({5, 7}, f64));
  const auto give = [&](const Tensor& part, const Region& region) {
    const Tensor y = record("probe", zeros({}, f64), {x}, {},
                            [&](const Saved&, const Tensor&, const NeedsGradient&) -> Gradients {
                              return {{part, region}};
                            });
    return grad({y}, {x}, {.create_graph = differentiable})[0];
  };
  const auto refuses = [&](const Shape& shape, const Region& region) {
    INFO(to_string(shape) << " at " << region.offset << ", " << to_string(region.strides));
    CHECK_THROWS_WITH(give(ones(shape, f64), region),
                      ContainsSubstring("[probe]") && ContainsSubstring("region"));
  };
  refuses({3}, {33, {1}});
  refuses({3}, {-1, {1}});
  refuses({3}, {0, {-1}});
  refuses({3}, {0, {0}});
  refuses({3}, {0, {18}});
  refuses({3}, {0, {std::int64_t{1} << 62}});
  refuses({3}, {std::int64_t{1} << 62, {1}});
  refuses({5, 8}, {0, {7, 1}});
  refuses({3, 3}, {0, {2, 1}});
  refuses({3, 3}, {0, {1}});
  refuses({1}, {35, {1}});
  CHECK(sum(give(ones({3}, f64), {32, {1}})).item() == 3);
  CHECK(give(ones({3, 2}, f64), {1, {1, 14}}).to_vector()[15] == 1);
  CHECK(give(ones({1}, f64), {34, {99}}).to_vector()[34] == 1);
  CHECK(sum(give(ones({0, 3}, f64), {0, {7, 1}})).item() == 0);
}

TEST_CASE("a rule that writes into its cotangent, or into what it saved, is refused before it does") {
  const auto write = [](Tensor t) { t.mutable_data<double>()[0] = 99; };
  const Tensor x = leaf(tensor({2, 3, 5}, f64)), seed = tensor({7, 11, 13}, f64);
  const auto refused = [&](const auto& rule) {
    CHECK_THROWS_WITH(backward(identity(x, rule), {.gradient = seed}),
                      ContainsSubstring("[probe]") && ContainsSubstring("clone"));
    CHECK(seed.to_vector() == Values{7, 11, 13});
    CHECK(x.to_vector() == Values{2, 3, 5});
  };
  refused([&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
    write(dy);
    return {dy};
  });
  refused([&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
    write(reshape(dy, {3, 1}).detach());
    return {dy};
  });
  refused([&](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
    write(saved[0]);
    return {dy};
  });
  backward(identity(x,
                    [&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                      const Tensor own = clone(dy);
                      write(own);
                      return {own};
                    }),
           {.gradient = seed});
  CHECK(x.grad().to_vector() == Values{99, 11, 13});
}

TEST_CASE("what was not recorded says why") {
  const Tensor x = leaf(tensor({2, 3, 5}, f64));
  {
    const NoGrad off;
    CHECK_THROWS_WITH(backward(sum(x * x)), ContainsSubstring("NoGrad"));
  }
  CHECK_THROWS_WITH(backward(sum(x.detach())), ContainsSubstring("requires a gradient"));
  const Tensor y = identity(x, [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
    Tensor own = saved[0].detach();
    own.set_requires_grad();
    backward(sum(own * own));
    return {dy};
  });
  CHECK_THROWS_WITH(backward(sum(y)), ContainsSubstring("inside a rule") && ContainsSubstring("vjp"));
  const Tensor z = identity(x, [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
    return {vjp([](const Tensor& t) { return t * t; }, saved[0], dy)};
  });
  backward(sum(z));
  CHECK(x.grad().to_vector() == Values{4, 6, 10});
}
