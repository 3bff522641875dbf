#include "fovea/layers/visit.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<NamedTensor>& tensors) {
  Names names;
  for (const NamedTensor& named : tensors) names.push_back(named.name);
  return names;
}

// A layer with every kind of member, and a tie.
struct Everything {
  Tensor scale = parameter(ones({7}));
  Tensor without_value;
  Linear first;
  std::vector<Linear> stack;
  std::optional<Linear> present, absent;
  Linear pretrained;
  Tensor mean = zeros({5});
  Tensor again = scale;

  explicit Everything(Rng& rng)
      : first(2, 3, rng), present(Linear(3, 5, rng, {.bias = false})), pretrained(5, 11, rng) {
    stack.emplace_back(3, 3, rng);
    stack.emplace_back(3, 7, rng);
    freeze(pretrained);
  }

  static void visit(const Everything& self, Visitor& v) {
    v("again", self.again);
    v("scale", self.scale);
    v.tie("again", "scale");
    v("without_value", self.without_value);
    v("first", self.first);
    v("stack", self.stack);
    v("present", self.present);
    v("absent", self.absent);
    v.frozen("pretrained", self.pretrained);
    v.buffer("mean", self.mean);
  }
};

// Two tensors, which each test names in its own way.
struct Pair {
  Tensor a = parameter(ones({2, 3}));
  Tensor b = parameter(ones({2, 3}));
  std::vector<std::pair<std::string, std::string>> ties = {};
  std::string name_of_b = "b";
  Role role_of_b = Role::parameter;

  static void visit(const Pair& self, Visitor& v) {
    v("a", self.a);
    if (self.role_of_b == Role::parameter) v(self.name_of_b, self.b);
    if (self.role_of_b == Role::frozen) v.frozen(self.name_of_b, self.b);
    if (self.role_of_b == Role::buffer) v.buffer(self.name_of_b, self.b);
    for (const auto& [name, original] : self.ties) v.tie(name, original);
  }
};

// `visit` as a template, with mutable access.
struct Spelled {
  Tensor W = parameter(ones({3}));
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    v("W", self.W);
  }
};

struct NotALayer {
  Tensor W;
};

TEST_CASE("named_parameters: full names in the order of visit, each tensor once", "[layers]") {
  Rng rng(1);
  const Everything layer(rng);
  CHECK(names_of(named_parameters(layer)) == Names{"scale", "first.W", "first.b", "stack.0.W", "stack.0.b",
                                                   "stack.1.W", "stack.1.b", "present.W"});
  CHECK(parameter_count(layer) == 7 + (2 * 3 + 3) + (3 * 3 + 3) + (3 * 7 + 7) + 3 * 5);
  CHECK(names_of(named_parameters(Spelled{})) == Names{"W"});
}

TEST_CASE("named_parameters: vectors, arrays and optionals of tensors and of each other", "[layers]") {
  struct Nested {
    std::array<Tensor, 2> pair{parameter(ones({2})), parameter(ones({3}))};
    std::vector<std::optional<Tensor>> some{std::nullopt, parameter(ones({5}))};
    static void visit(const Nested& self, Visitor& v) {
      v("pair", self.pair);
      v("some", self.some);
    }
  };
  CHECK(names_of(named_parameters(Nested{})) == Names{"pair.0", "pair.1", "some.1"});
}

TEST_CASE("named_parameters: the handles share the layer's tensors", "[layers]") {
  const Spelled layer;
  Tensor W = named_parameters(layer)[0].tensor;
  W.mutable_data<float>()[1] = 5;
  CHECK(layer.W.at({1}) == 5);
}

TEST_CASE("trainable_parameters: the parameters that are not frozen", "[layers]") {
  Rng rng(1);
  const Everything layer(rng);
  CHECK(names_of(trainable_parameters(layer)) == names_of(named_parameters(layer)));

  freeze(layer.stack[1]);
  freeze(layer.present.value());
  CHECK(names_of(trainable_parameters(layer)) ==
        Names{"scale", "first.W", "first.b", "stack.0.W", "stack.0.b"});
  CHECK(named_parameters(layer).size() == 8);
  CHECK(trainable_parameters(layer)[1].tensor.is_same(layer.first.W));
  CHECK(names_of(trainable_parameters(clone(layer))) == names_of(trainable_parameters(layer)));

  Tensor(layer.stack[1].W).set_requires_grad();
  CHECK(names_of(trainable_parameters(layer)).back() == "stack.1.W");
}

TEST_CASE("freeze: a frozen layer gets no gradient and passes it on", "[layers]") {
  Rng rng(1);
  const Linear first(2, 3, rng), second(3, 5, rng);
  freeze(second);
  backward(sum(second(first(randn({7, 2}, rng))) * randn({7, 5}, rng)));
  CHECK(first.W.grad().defined());
  CHECK_FALSE(second.W.grad().defined());
}

TEST_CASE("members: roles and ties", "[layers]") {
  Rng rng(1);
  const Everything layer(rng);
  const std::vector<Member> all = members(layer);
  REQUIRE(all.size() == 12);
  CHECK(all[0].name == "again");
  CHECK(all[0].tied_to == std::size_t{1});
  CHECK_FALSE(all[1].tied_to);
  CHECK(all[9].name == "pretrained.W");
  CHECK(all[9].role == Role::frozen);
  CHECK(all[11].role == Role::buffer);
  CHECK(all[2].role == Role::parameter);
}

TEST_CASE("a layer is a type with visit", "[layers]") {
  STATIC_REQUIRE(Layer<Everything>);
  STATIC_REQUIRE(Layer<Spelled>);
  STATIC_REQUIRE_FALSE(Layer<NotALayer>);
  STATIC_REQUIRE_FALSE(Layer<Tensor>);
  // A temporary would leave the visitor with a dangling address.
  STATIC_REQUIRE_FALSE(std::is_invocable_v<Visitor&, const char*, Tensor>);
  STATIC_REQUIRE(std::is_invocable_v<Visitor&, const char*, const Tensor&>);
}

TEST_CASE("visit: an array shared without a declared tie is an error that names both", "[layers]") {
  Rng rng(1);
  struct Stack {
    std::vector<Linear> blocks;
    static void visit(const Stack& self, Visitor& v) { v("blocks", self.blocks); }
  };
  const Stack copies{std::vector<Linear>(3, Linear(2, 5, rng))};
  CHECK_THROWS_WITH(members(copies),
                    ContainsSubstring("'blocks.0.W' and 'blocks.1.W' share one tensor of shape (2, 5)"));
  CHECK_THROWS_AS(clone(copies), ValueError);

  Pair view;
  view.b = view.a.detach().set_requires_grad();
  CHECK_THROWS_WITH(named_parameters(view), ContainsSubstring("'a' and 'b' share one tensor"));
}

TEST_CASE("visit: a declared tie of different tensors is an error", "[layers]") {
  Pair pair;
  pair.ties = {{"b", "a"}};
  CHECK_THROWS_WITH(members(pair),
                    ContainsSubstring("'b' is declared tied to 'a', but they hold different tensors"));

  pair.b = pair.a;
  CHECK(parameter_count(pair) == 6);
  // Sharing the array is not enough: each handle would get a part of the gradient.
  pair.b = pair.a.detach().set_requires_grad();
  CHECK_THROWS_AS(members(pair), ValueError);

  pair.ties = {{"b", "c"}};
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("a tie names 'c', but there is no member of that name"));
  pair.ties = {{"b", "a"}, {"a", "b"}};
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("form a circle"));
}

TEST_CASE("visit: chains of ties, and ties of nested members", "[layers]") {
  struct Deep {
    Rng rng{1};
    Linear head{2, 3, rng, {.bias = false}};
    std::vector<Linear> body{head, head};
    static void visit(const Deep& self, Visitor& v) {
      v("head", self.head);
      v("body", self.body);
      v.tie("head.W", "body.0.W");
      v.tie("body.0.W", "body.1.W");
    }
  };
  struct Outer {
    Deep deep;
    static void visit(const Outer& self, Visitor& v) { v("deep", self.deep); }
  };
  const std::vector<NamedTensor> parameters = named_parameters(Outer{});
  CHECK(names_of(parameters) == Names{"deep.body.1.W"});

  const Outer copy = clone(Outer{});
  CHECK(copy.deep.head.W.is_same(copy.deep.body[1].W));
}

TEST_CASE("visit: tensors that can't be trained or loaded are refused by name", "[layers]") {
  Pair pair;
  pair.name_of_b = "a";
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("two members are named 'a'"));

  pair = {};
  pair.b = pair.a * 2.0;
  CHECK_THROWS_AS(members(pair), GraphError);
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("'b', shape (2, 3), was computed by"));

  pair = {};
  pair.b = transpose(ones({2, 3}));
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("'b', shape (3, 2), is not in row-major order"));

  pair = {};
  pair.role_of_b = Role::frozen;
  CHECK_THROWS_WITH(members(pair),
                    ContainsSubstring("'b', shape (2, 3), is declared frozen but requires a gradient"));
  pair.role_of_b = Role::buffer;
  CHECK_THROWS_WITH(members(pair), ContainsSubstring("declared a buffer but requires a gradient"));
}

TEST_CASE("parameter: makes a leaf in row-major order", "[layers]") {
  const Tensor initial = tensor({{1, 2, 3}, {4, 5, 6}});
  const Tensor p = parameter(transpose(initial));
  CHECK(p.requires_grad());
  CHECK(p.is_leaf());
  CHECK(p.is_contiguous());
  CHECK(p.to_vector() == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK_FALSE(initial.requires_grad());
}

TEST_CASE("clone: the copy is independent, and ties are kept", "[layers]") {
  Rng rng(1);
  Everything layer(rng);
  backward(sum(layer.scale * 3.0));
  Everything copy = clone(layer);

  CHECK(copy.scale.is_same(copy.again));
  CHECK(copy.scale.requires_grad());
  CHECK_FALSE(copy.scale.grad().defined());
  CHECK_FALSE(copy.mean.requires_grad());
  CHECK_FALSE(copy.pretrained.W.requires_grad());
  CHECK_FALSE(copy.without_value.defined());
  CHECK(copy.stack[1].W.to_vector() == layer.stack[1].W.to_vector());

  for (const Member& member : members(copy)) {
    Tensor x = *member.tensor;
    for (std::int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = 100;
  }
  for (const Member& member : members(layer)) {
    for (const double value : member.tensor->to_vector()) REQUIRE(value < 100);
  }
}

TEST_CASE("to: converts the dtype and keeps values, roles and ties", "[layers]") {
  Rng rng(1);
  const Everything layer(rng);
  const Everything exact = to(layer, f64);
  for (const Member& member : members(exact)) CHECK(member.tensor->dtype() == f64);
  CHECK(layer.first.W.dtype() == f32);
  CHECK(exact.first.W.to_vector() == layer.first.W.to_vector());
  CHECK(exact.first.W.requires_grad());
  CHECK_FALSE(exact.pretrained.W.requires_grad());
  CHECK(exact.scale.is_same(exact.again));
  CHECK_FALSE(to(layer, f32).scale.is_same(layer.scale));
}

TEST_CASE("to_string: a line for each tensor", "[layers]") {
  Rng rng(1);
  CHECK(to_string(Everything(rng)) ==
        "again         = scale\n"
        "scale         f32 (7,)\n"
        "first.W       f32 (2, 3)\n"
        "first.b       f32 (3,)\n"
        "stack.0.W     f32 (3, 3)\n"
        "stack.0.b     f32 (3,)\n"
        "stack.1.W     f32 (3, 7)\n"
        "stack.1.b     f32 (7,)\n"
        "present.W     f32 (3, 5)\n"
        "pretrained.W  f32 (5, 11)  frozen\n"
        "pretrained.b  f32 (11,)  frozen\n"
        "mean          f32 (5,)  buffer\n"
        "71 parameters, 66 frozen, 5 in buffers");
  CHECK(fmt::format("{}", Linear(1234, 1000, rng)) ==
        "W  f32 (1234, 1000)\nb  f32 (1000,)\n1,235,000 parameters");
}

// A variant of two layers.
struct Chosen {
  std::variant<Tensor, Linear> layer;
  std::vector<Linear> stack;
  static void visit(const Chosen& self, Visitor& v) {
    v("layer", self.layer);
    v("stack", self.stack);
  }
};

TEST_CASE("visit: a variant is the layer that it holds", "[layers]") {
  Rng rng(1);
  CHECK(names_of(named_parameters(Chosen{parameter(ones({3})), {}})) == Names{"layer"});
  const Chosen original{Linear(2, 3, rng), {}};
  CHECK(names_of(named_parameters(original)) == Names{"layer.W", "layer.b"});
  const Chosen copy = clone(original);
  CHECK_FALSE(std::get<Linear>(copy.layer).W.is_same(std::get<Linear>(original.layer).W));
}

TEST_CASE("nested_layers: every layer by name, with its address", "[layers]") {
  Rng rng(1);
  const Chosen model{Linear(2, 3, rng), {Linear(3, 3, rng), Linear(3, 3, rng)}};
  const std::vector<NestedLayer> layers = nested_layers(model);
  Names names;
  for (const NestedLayer& layer : layers) names.push_back(layer.name);
  CHECK(names == Names{"", "layer", "stack.0", "stack.1"});
  CHECK(layers[0].site == site_of(&model));
  CHECK(layers[3].site == site_of(&model.stack[1]));
}

}  // namespace
}  // namespace fovea
