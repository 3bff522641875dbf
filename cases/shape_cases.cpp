#include "cases/cases.h"

// Views of one tensor, and copies.

namespace fovea {
namespace {

void add_reshape(Cases& cases) {
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
    c.refuses<ShapeError>("a size that cannot be inferred", "[reshape]", [](const Inputs& in) {
      return reshape(in["x"], {7, -1});
    });
  });
}

void add_transpose(Cases& cases) {
  cases.add("transpose", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return transpose(in["x"]); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({x.size(0), x.size(2), x.size(1)}, [&](const Shape& at) {
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
      return tensor_from({x.size(2), x.size(1), x.size(0)}, [&](const Shape& at) {
        return x.at({at[2], at[1], at[0]});
      });
    };
  });
}

void add_permute(Cases& cases) {
  cases.add("permute", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return permute(in["x"], {1, -1, 0}); };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({x.size(1), x.size(2), x.size(0)}, [&](const Shape& at) {
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
}

void add_broadcast_to_and_sum_to(Cases& cases) {
  cases.add("broadcast_to", [](Case& c) {
    c.input("x", {2, 1, 3});
    c.value = [](const Inputs& in) {
      return broadcast_to(in["x"], {5, in["x"].size(0), 7, in["x"].size(2)});
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& x = in["x"];
      return tensor_from({5, x.size(0), 7, x.size(2)}, [&](const Shape& at) {
        return x.at({at[1], 0, at[3]});
      });
    };
    c.refuses<ShapeError>("a size that is not 1 and differs", "[broadcast_to]", [](const Inputs& in) {
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
      return tensor_from({x.size(1), 1}, [&](const Shape& at) {
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
  add_reshape(cases);
  add_transpose(cases);
  add_permute(cases);
  add_broadcast_to_and_sum_to(cases);
  add_copies(cases);
}

}  // namespace fovea
