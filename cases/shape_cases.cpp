#include <fmt/format.h>

#include <vector>

#include "cases/cases.h"

namespace fovea {
namespace {

// The tensor of that shape whose element at a position is element(position).
template <class F>
Tensor build(const Shape& shape, const F& element) {
  std::vector<double> values;
  Shape position(shape.size(), 0);
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    std::int64_t rest = i;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      position[axis] = rest % shape[axis];
    values.push_back(element(position));
  }
  return from_values(values, shape, f64);
}

// Elements first, first + step, ... of the middle axis of x, `count` of them.
Tensor every(const Tensor& x, std::int64_t first, std::int64_t step, std::int64_t count) {
  return build({x.size(0), count, x.size(2)}, [&](const Shape& at) {
    return x.at({at[0], first + at[1] * step, at[2]});
  });
}

void add_views(Cases& cases) {
  cases.add("reshape", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return reshape(x, {x.size(0) * x.size(1), x.size(2)});
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return from_values(x.to_vector(), {x.size(0) * x.size(1), x.size(2)}, f64);
    };
    c.refuses<ShapeError>("another number of elements", "[reshape]", [](const Inputs& in) {
      return reshape(in["x"], {7, 5});
    });
  });
  cases.add("reshape, one size inferred", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.not_empty = {2, 3, 5};
    c.value = [](const Inputs& in) { return reshape(in["x"], {in["x"].size(2), -1}); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return from_values(x.to_vector(), {x.size(2), x.size(0) * x.size(1)}, f64);
    };
    c.refuses<ShapeError>("two sizes to infer", "[reshape]", [](const Inputs& in) {
      return reshape(in["x"], {-1, -1});
    });
    c.refuses<ShapeError>("a size that can't be inferred", "[reshape]", [](const Inputs& in) {
      return reshape(in["x"], {7, -1});
    });
  });
  cases.add("transpose", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return transpose(in["x"]); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), x.size(2), x.size(1)}, [&](const Shape& at) {
        return x.at({at[0], at[2], at[1]});
      });
    };
    c.refuses<ShapeError>("an axis out of range", "[transpose] axis -4",
                          [](const Inputs& in) { return transpose(in["x"], 0, -4); });
  });
  cases.add("transpose, of other axes", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return transpose(in["x"], 0, 2); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(2), x.size(1), x.size(0)}, [&](const Shape& at) {
        return x.at({at[2], at[1], at[0]});
      });
    };
  });
  cases.add("permute", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return permute(in["x"], {1, -1, 0}); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(1), x.size(2), x.size(0)}, [&](const Shape& at) {
        return x.at({at[2], at[0], at[1]});
      });
    };
    c.refuses<ShapeError>("an axis named twice", "[permute]", [](const Inputs& in) {
      return permute(in["x"], {0, 1, 1});
    });
    c.refuses<ShapeError>("an axis left out", "[permute]", [](const Inputs& in) {
      return permute(in["x"], {0, 1});
    });
    c.refuses<ShapeError>("an axis out of range", "[permute] axis 3", [](const Inputs& in) {
      return permute(in["x"], {0, 1, 3});
    });
  });
  cases.add("broadcast_to", [](Case& c) {
    c.input("x", {2, 1, 3});
    c.value = [](const Inputs& in) {
      return broadcast_to(in["x"], {5, in["x"].size(0), 7, in["x"].size(2)});
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({5, x.size(0), 7, x.size(2)}, [&](const Shape& at) { return x.at({at[1], 0, at[3]}); });
    };
    c.refuses<ShapeError>("an axis that would have to shrink", "[broadcast_to]", [](const Inputs& in) {
      return broadcast_to(in["x"], {1, 1, 3});
    });
    c.refuses<ShapeError>("fewer axes", "[broadcast_to]",
                          [](const Inputs& in) { return broadcast_to(in["x"], {3}); });
  });
  cases.add("sum_to", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return sum_to(in["x"], {in["x"].size(1), 1}); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(1), 1}, [&](const Shape& at) {
        double total = 0;
        for (std::int64_t i = 0; i < x.size(0); ++i) {
          for (std::int64_t k = 0; k < x.size(2); ++k) total += x.at({i, at[0], k});
        }
        return total;
      });
    };
    c.refuses<ShapeError>("a shape that does not broadcast to x", "[sum_to]",
                          [](const Inputs& in) { return sum_to(in["x"], {7}); });
  });
}

void add_pieces(Cases& cases) {
  cases.add("slice", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) { return slice(in["x"], 1, 2, 5); };
    c.oracle = [](const Inputs& in) { return every(in["x"], 2, 1, 3); };
    c.refuses<ShapeError>("an end beyond the axis", "[slice]",
                          [](const Inputs& in) { return slice(in["x"], 1, 2, 8); });
    c.refuses<ShapeError>("an end before the beginning", "[slice]",
                          [](const Inputs& in) { return slice(in["x"], 1, 5, 2); });
    c.refuses<ValueError>("a step of 0", "[slice]",
                          [](const Inputs& in) { return slice(in["x"], 1, 2, 5, 0); });
    c.refuses<ShapeError>("an axis out of range", "[slice] axis 3",
                          [](const Inputs& in) { return slice(in["x"], 3, 0, 1); });
  });
  cases.add("slice, with a step that does not divide", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) { return slice(in["x"], -2, 1, 7, 4); };
    c.oracle = [](const Inputs& in) { return every(in["x"], 1, 4, 2); };
  });
  cases.add("slice, counted from the back", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) { return slice(in["x"], 1, -6, -1, 2); };
    c.oracle = [](const Inputs& in) { return every(in["x"], 1, 2, 3); };
  });
  cases.add("slice, of a slice, overlapping another", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return slice(slice(x, 1, 1, 7), 1, 0, 5, 2) * slice(x, 1, 2, 5) * x.size(2);
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), 3, x.size(2)}, [&](const Shape& at) {
        const double outer = x.at({at[0], 1 + 2 * at[1], at[2]});
        return outer * x.at({at[0], 2 + at[1], at[2]}) * static_cast<double>(x.size(2));
      });
    };
  });
  cases.add("select", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) { return select(in["x"], 1, 4); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), x.size(2)}, [&](const Shape& at) { return x.at({at[0], 4, at[1]}); });
    };
    c.refuses<IndexError>("a position beyond the axis", "[select] position 7",
                          [](const Inputs& in) { return select(in["x"], 1, 7); });
  });
  cases.add("select, counted from the back", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {3};
    c.value = [](const Inputs& in) { return select(in["x"], -1, -1); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), x.size(1)}, [&](const Shape& at) { return x.at({at[0], at[1], 2}); });
    };
  });
  cases.add("split, by sizes", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) {
      const std::vector<Tensor> pieces = split(in["x"], 1, Shape{2, 0, 3, 2});
      return pieces[0] * 2 + pieces[3] * pieces[3] + sum(pieces[1]) + sum(pieces[2], 1, keepdims);
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), 2, x.size(2)}, [&](const Shape& at) {
        const auto element = [&](std::int64_t i) { return x.at({at[0], i, at[2]}); };
        return 2 * element(at[1]) + element(5 + at[1]) * element(5 + at[1]) + element(2) + element(3) +
               element(4);
      });
    };
    c.refuses<ShapeError>("sizes that do not add up", "[split]", [](const Inputs& in) {
      split(in["x"], 1, Shape{2, 3});
    });
    c.refuses<ShapeError>("a negative size", "[", [](const Inputs& in) { split(in["x"], 1, Shape{8, -1}); });
  });
  cases.add("split, in equal parts", [](Case& c) {
    c.input("x", {2, 6, 5});
    c.fixed_sizes = {6};
    c.value = [](const Inputs& in) {
      const std::vector<Tensor> pieces = split(in["x"], -2, 3);
      return pieces[0] * pieces[1] - pieces[2];
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return build({x.size(0), 2, x.size(2)}, [&](const Shape& at) {
        const auto element = [&](std::int64_t i) { return x.at({at[0], i + at[1], at[2]}); };
        return element(0) * element(2) - element(4);
      });
    };
    c.refuses<ShapeError>("parts that do not divide the axis", "[split]",
                          [](const Inputs& in) { split(in["x"], 1, 4); });
    c.refuses<ShapeError>("no parts", "[split]", [](const Inputs& in) { split(in["x"], 1, 0); });
  });
}

void add_joins(Cases& cases) {
  cases.add("concat", [](Case& c) {
    c.input("a", {3, 2, 5});
    c.input("b", {3, 7, 5});
    c.value = [](const Inputs& in) { return concat({in["a"], in["b"]}, 1); };
    c.oracle = [](const Inputs& in) {
      const Tensor &a = in["a"], &b = in["b"];
      return build({a.size(0), a.size(1) + b.size(1), a.size(2)}, [&](const Shape& at) {
        return at[1] < a.size(1) ? a.at({at[0], at[1], at[2]}) : b.at({at[0], at[1] - a.size(1), at[2]});
      });
    };
    c.refuses<ShapeError>("another axis differs", "[concat]", [](const Inputs& in) {
      return concat({in["a"], in["b"]}, 0);
    });
    c.refuses<ShapeError>("nothing to join", "[concat]", [](const Inputs&) { return concat({}, 0); });
    c.refuses<ShapeError>("an axis out of range", "[concat] axis 3", [](const Inputs& in) {
      return concat({in["a"], in["a"]}, 3);
    });
    c.refuses<ShapeError>("different ranks", "[concat]", [](const Inputs& in) {
      return concat({in["a"], reshape(in["a"], {-1})}, 0);
    });
  });
  cases.add("concat, the same tensor thrice, along the last axis", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return concat({in["x"], in["x"] * in["x"], in["x"]}, -1); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      const std::int64_t n = x.size(1);
      return build({x.size(0), 3 * n}, [&](const Shape& at) {
        const double value = x.at({at[0], at[1] % n});
        return at[1] / n == 1 ? value * value : value;
      });
    };
  });
  cases.add("concat, of many", [](Case& c) {
    for (int i = 0; i < 11; ++i) c.input(fmt::format("x{}", i), {3, 2});
    c.value = [](const Inputs& in) {
      std::vector<Tensor> pieces;
      for (const auto& [name, x] : in) pieces.push_back(x);
      return concat(pieces, 1);
    };
    c.oracle = [](const Inputs& in) {
      const std::int64_t n = in.at(0).size(1);
      return build({in.at(0).size(0), 11 * n}, [&](const Shape& at) {
        return in.at(static_cast<std::size_t>(at[1] / n)).at({at[0], at[1] % n});
      });
    };
  });
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
        return build(shape, [&](Shape at) {
          const Tensor& from = at[along] == 0 ? a : b;
          at.erase(at.begin() + along);
          return from.at({at[0], at[1]});
        });
      };
      c.refuses<ShapeError>("shapes that differ", "[stack]", [=](const Inputs& in) {
        return stack({in["a"], transpose(in["b"])}, axis);
      });
      c.refuses<ShapeError>("nothing to join", "[stack]", [=](const Inputs&) { return stack({}, axis); });
    });
  }
}

void add_copies(Cases& cases) {
  cases.add("clone", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return clone(in["x"]); };
    c.oracle = [](const Inputs& in) { return from_values(in["x"].to_vector(), in["x"].shape(), f64); };
  });
  cases.add("contiguous", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return contiguous(in["x"]); };
    c.oracle = [](const Inputs& in) { return from_values(in["x"].to_vector(), in["x"].shape(), f64); };
  });
  cases.add("to, the same dtype", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return to(in["x"], in["x"].dtype()) * in["x"]; };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return x * x; }); };
  });
}

}  // namespace

void add_shape_cases(Cases& cases) {
  add_views(cases);
  add_pieces(cases);
  add_joins(cases);
  add_copies(cases);
}

}  // namespace fovea
