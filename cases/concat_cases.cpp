#include <fmt/format.h>

#include <vector>

#include "cases/cases.h"

// Several tensors joined into one: concat, stack.

namespace fovea {
namespace {

void add_concat_of_two(Cases& cases) {
  cases.add("concat", [](Case& c) {
    c.input("a", {3, 2, 5});
    c.input("b", {3, 7, 5});
    c.value = [](const Inputs& in) { return concat({in["a"], in["b"]}, 1); };
    c.oracle = [](const Inputs& in) {
      const Tensor &a = in["a"], &b = in["b"];
      return tensor_from({a.size(0), a.size(1) + b.size(1), a.size(2)}, [&](const Shape& at) {
        return at[1] < a.size(1) ? a.at({at[0], at[1], at[2]}) : b.at({at[0], at[1] - a.size(1), at[2]});
      });
    };
    c.refuses<ShapeError>("sizes that differ along another axis", "[concat]", [](const Inputs& in) {
      return concat({in["a"], in["b"]}, 0);
    });
    c.refuses<ShapeError>("no tensors", "[concat]", [](const Inputs&) { return concat({}, 0); });
    c.refuses<ShapeError>("an axis out of range", "[concat] axis 3", [](const Inputs& in) {
      return concat({in["a"], in["a"]}, 3);
    });
    c.refuses<ShapeError>("different ranks", "[concat]", [](const Inputs& in) {
      return concat({in["a"], reshape(in["a"], {-1})}, 0);
    });
  });
}

void add_concat_of_several(Cases& cases) {
  cases.add("concat, the same tensor three times, along the last axis", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return concat({in["x"], in["x"] * in["x"], in["x"]}, -1); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      const std::int64_t n = x.size(1);
      return tensor_from({x.size(0), 3 * n}, [&](const Shape& at) {
        const double value = x.at({at[0], at[1] % n});
        return at[1] / n == 1 ? value * value : value;
      });
    };
  });
  cases.add("concat, of many tensors", [](Case& c) {
    for (int i = 0; i < 11; ++i) c.input(fmt::format("x{}", i), {3, 2});
    c.value = [](const Inputs& in) {
      std::vector<Tensor> pieces;
      for (const auto& [name, x] : in) pieces.push_back(x);
      return concat(pieces, 1);
    };
    c.oracle = [](const Inputs& in) {
      const std::int64_t n = in.at(0).size(1);
      return tensor_from({in.at(0).size(0), 11 * n}, [&](const Shape& at) {
        return in.at(static_cast<std::size_t>(at[1] / n)).at({at[0], at[1] % n});
      });
    };
  });
}

void add_stack(Cases& cases) {
  for (const std::int64_t axis : {0, 1, -1}) {
    cases.add(fmt::format("stack, along axis {}", axis), [axis](Case& c) {
      c.input("a", {3, 5});
      c.input("b", {3, 5});
      c.value = [=](const Inputs& in) { return stack({in["a"], in["b"]}, axis); };
      c.oracle = [=](const Inputs& in) {
        const Tensor &a = in["a"], &b = in["b"];
        const auto along = static_cast<std::size_t>(axis < 0 ? 2 : axis);
        Shape shape = a.shape();
        shape.insert(shape.begin() + along, 2);
        return tensor_from(shape, [&](Shape at) {
          const Tensor& from = at[along] == 0 ? a : b;
          at.erase(at.begin() + along);
          return from.at({at[0], at[1]});
        });
      };
      c.refuses<ShapeError>("shapes that differ", "[stack]", [=](const Inputs& in) {
        return stack({in["a"], transpose(in["b"])}, axis);
      });
      c.refuses<ShapeError>("no tensors", "[stack]", [=](const Inputs&) { return stack({}, axis); });
    });
  }
}

}  // namespace

void add_concat_cases(Cases& cases) {
  add_concat_of_two(cases);
  add_concat_of_several(cases);
  add_stack(cases);
}

}  // namespace fovea
