#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/state.h"
#include "fovea/train/optimizers/optimizer.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

struct Model {
  Tensor embedding = parameter(ones({7, 3}));
  Tensor W = parameter(ones({3, 5}));
  Tensor b = parameter(ones({5}));

  std::vector<NamedTensor> parameters() const {
    return {{"embedding.table", embedding}, {"blocks.0.W", W}, {"blocks.0.b", b}};
  }
  void set_gradients() const {
    for (const auto& [name, p] : parameters()) p.set_grad(ones(p.shape()));
  }
};

TEST_CASE("groups: have learning rates and weight decay of their own, and the first match counts",
          "[train]") {
  const Model model;
  AdamW adamw(model.parameters(), {.learning_rate = 0.5,
                                   .weight_decay = 0.1,
                                   .groups = {{.pattern = "embedding.*", .weight_decay = 0.0},
                                              {.pattern = "*.b", .lr_scale = 0.25, .weight_decay = 0.2},
                                              {.pattern = "*", .lr_scale = 0}}});
  CHECK(adamw.decayed() == Names{"blocks.0.W", "blocks.0.b"});
  CHECK(adamw.not_decayed() == Names{"embedding.table"});
  CHECK(adamw.settings()[0].group == "embedding.*");
  CHECK(adamw.settings()[1].group == "*");
  CHECK(adamw.settings()[2].lr_scale == 0.25);

  model.set_gradients();
  adamw.step();
  // The first step of Adam is the learning rate, whatever the gradient.
  CHECK(model.embedding.at({0, 0}) == Approx(1 - 0.5));
  CHECK(model.W.at({0, 0}) == 1);
  CHECK(model.b.at({0}) == Approx(1 - 0.125 * 0.2 - 0.125));
}

TEST_CASE("groups: learning rates scale the optimizer's, in every optimizer", "[train]") {
  const std::vector<ParameterGroup> groups{{.pattern = "*.b", .lr_scale = 0.5}};
  const auto check = [&](const auto& make) {
    const Model one, two;
    const auto whole = make(one.parameters(), std::vector<ParameterGroup>{});
    const auto grouped = make(two.parameters(), groups);
    whole->set_learning_rate(0.5);
    grouped->set_learning_rate(1);
    one.set_gradients();
    two.set_gradients();
    whole->step();
    grouped->step();
    CHECK(one.b.at({0}) < 1);
    CHECK(one.b.to_vector() == two.b.to_vector());
    CHECK(two.W.at({0, 0}) < one.W.at({0, 0}));
  };
  check([](auto p, auto g) { return std::make_unique<Sgd>(p, SgdOptions{.groups = g}); });
  check([](auto p, auto g) { return std::make_unique<Sgd>(p, SgdOptions{.momentum = 0.5, .groups = g}); });
  check([](auto p, auto g) { return std::make_unique<Adam>(p, AdamOptions{.groups = g}); });
  check([](auto p, auto g) { return std::make_unique<AdamW>(p, AdamWOptions{.groups = g}); });
  check([](auto p, auto g) { return std::make_unique<Lion>(p, LionOptions{.groups = g}); });
  check([](auto p, auto g) { return std::make_unique<Muon>(p, MuonOptions{.groups = g}); });
}

TEST_CASE("groups: wrong options are errors", "[train]") {
  const Model model;
  const auto with = [&](const std::vector<ParameterGroup>& groups) {
    AdamW(model.parameters(), {.groups = groups});
  };
  CHECK_THROWS_WITH(with({{.pattern = "block.*"}}),
                    "[AdamW] group 'block.*' matches no parameter: their names are like 'embedding.table'");
  CHECK_THROWS_WITH(with({{.pattern = "*"}, {.pattern = "*.b"}}),
                    ContainsSubstring("put narrow patterns first"));
  CHECK_THROWS_AS(with({{.pattern = "*", .lr_scale = -1}}), ValueError);
  CHECK_THROWS_AS(with({{.pattern = "*", .weight_decay = -1}}), ValueError);
  CHECK_THROWS_AS(with({{.pattern = "*", .weight_decay = std::numeric_limits<double>::infinity()}}),
                  ValueError);
  CHECK_THROWS_WITH(Adam(model.parameters(), {.groups = {{.pattern = "*", .weight_decay = 0.1}}}),
                    ContainsSubstring("[Adam] group '*' has a weight decay"));
}

TEST_CASE("parameter_table: shows the group, rate and decay of each parameter", "[train]") {
  const Model model;
  const AdamW adamw(
      model.parameters(),
      {.learning_rate = 3e-3, .weight_decay = 0.1, .groups = {{.pattern = "embedding.*", .lr_scale = 0.1}}});
  CHECK(parameter_table(adamw) ==
        "parameter        shape             elements  group             rate      decay\n"
        "embedding.table  (7, 3)                  21  embedding.*     0.0003        0.1\n"
        "blocks.0.W       (3, 5)                  15  -                0.003        0.1\n"
        "blocks.0.b       (5,)                     5  -                0.003          0\n"
        "decayed: 2 with 36 elements; not decayed: 1 with 5 elements");
}

}  // namespace
}  // namespace fovea
