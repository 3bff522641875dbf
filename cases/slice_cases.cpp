#include <vector>

#include "cases/cases.h"

// Pieces of one tensor: slice, select, split.

namespace fovea {
namespace {

// `count` elements of the middle axis of x: first, first + step, and so on.
Tensor every(const Tensor& x, std::int64_t first, std::int64_t step, std::int64_t count) {
  return tensor_from({x.size(0), count, x.size(2)}, [&](const Shape& at) {
    return x.at({at[0], first + at[1] * step, at[2]});
  });
}

void add_slice(Cases& cases) {
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
}

void add_slice_of_slice(Cases& cases) {
  cases.add("slice, of a slice, times an overlapping slice", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return slice(slice(x, 1, 1, 7), 1, 0, 5, 2) * slice(x, 1, 2, 5) * x.size(2);
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({x.size(0), 3, x.size(2)}, [&](const Shape& at) {
        const double outer = x.at({at[0], 1 + 2 * at[1], at[2]});
        return outer * x.at({at[0], 2 + at[1], at[2]}) * static_cast<double>(x.size(2));
      });
    };
  });
}

void add_select(Cases& cases) {
  cases.add("select", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) { return select(in["x"], 1, 4); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({x.size(0), x.size(2)}, [&](const Shape& at) { return x.at({at[0], 4, at[1]}); });
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
      return tensor_from({x.size(0), x.size(1)}, [&](const Shape& at) { return x.at({at[0], at[1], 2}); });
    };
  });
}

void add_split(Cases& cases) {
  cases.add("split, by sizes", [](Case& c) {
    c.input("x", {2, 7, 3});
    c.fixed_sizes = {7};
    c.value = [](const Inputs& in) {
      const std::vector<Tensor> pieces = split(in["x"], 1, Shape{2, 0, 3, 2});
      return pieces[0] * 2 + pieces[3] * pieces[3] + sum(pieces[1]) + sum(pieces[2], 1, keepdims);
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({x.size(0), 2, x.size(2)}, [&](const Shape& at) {
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
      return tensor_from({x.size(0), 2, x.size(2)}, [&](const Shape& at) {
        const auto element = [&](std::int64_t i) { return x.at({at[0], i + at[1], at[2]}); };
        return element(0) * element(2) - element(4);
      });
    };
    c.refuses<ShapeError>("parts that do not divide the axis", "[split]",
                          [](const Inputs& in) { split(in["x"], 1, 4); });
    c.refuses<ShapeError>("no parts", "[split]", [](const Inputs& in) { split(in["x"], 1, 0); });
  });
}

}  // namespace

void add_slice_cases(Cases& cases) {
  add_slice(cases);
  add_slice_of_slice(cases);
  add_select(cases);
  add_split(cases);
}

}  // namespace fovea
