#include "cases/cases.h"

namespace fovea {
namespace {

// The product of matrices as a sum of outer products, without a matrix product. Both have two or more axes.
Tensor sum_of_products(const Tensor& a, const Tensor& b) {
  Shape rows = a.shape(), columns = b.shape();
  rows.push_back(1);
  columns.insert(columns.end() - 2, 1);
  return sum(reshape(a, rows) * reshape(b, columns), -2);
}

Tensor as_row(const Tensor& x) { return reshape(x, {1, x.size(0)}); }
Tensor as_column(const Tensor& x) { return reshape(x, {x.size(0), 1}); }

// Small integers, whose sums f32 represents exactly.
Tensor whole_numbers(const Shape& shape, int step) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < numel(shape); ++i) numbers.push_back(static_cast<double>(i * step % 7 - 2));
  return from_values(numbers, shape, f64);
}

// More rows and columns than one tile, and an inner size that is cut into chunks in the value and in one
// gradient.
Example several_tiles() {
  const Tensor a = whole_numbers({127, 307}, 3), b = whole_numbers({307, 113}, 5);
  const Tensor dy = whole_numbers({127, 113}, 2);
  return {.name = "several tiles",
          .inputs = {{"a", a}, {"b", b}},
          .value = sum_of_products(a, b).to_vector(),
          .cotangent = dy.to_vector(),
          .gradients = {{"a", sum_of_products(dy, transpose(b)).to_vector()},
                        {"b", sum_of_products(transpose(a), dy).to_vector()}},
          .of = [](const Inputs& in) { return matmul(in["a"], in["b"]); }};
}

void add_matmul(Cases& cases) {
  const auto product = [&](const std::string& name, const Shape& a, const Shape& b,
                           const NamedFunction& oracle) {
    cases.add(name, [&](Case& c) {
      c.input("a", a);
      c.input("b", b);
      c.value = [](const Inputs& in) { return matmul(in["a"], in["b"]); };
      c.oracle = oracle;
      c.refuses<ShapeError>("inner sizes that differ", "[matmul] inner sizes differ", [](const Inputs&) {
        return matmul(zeros({3, 5}), zeros({7, 5}));
      });
      c.refuses<ShapeError>("batch axes that do not broadcast", "[matmul]", [](const Inputs&) {
        return matmul(zeros({2, 3, 5}), zeros({3, 5, 7}));
      });
      c.refuses<ShapeError>("a scalar", "[matmul]",
                            [](const Inputs&) { return matmul(zeros({}), zeros({5})); });
      if (a.size() == 2 && b.size() == 2) c.example(several_tiles());
    });
  };
  const NamedFunction matrices = [](const Inputs& in) { return sum_of_products(in["a"], in["b"]); };
  product("matmul", {3, 5}, {5, 7}, matrices);
  product("matmul, batched", {2, 3, 5}, {2, 5, 7}, matrices);
  product("matmul, one matrix on the right for the whole batch", {2, 3, 5}, {5, 7}, matrices);
  product("matmul, one matrix on the left for the whole batch", {3, 5}, {2, 5, 7}, matrices);
  product("matmul, batch axes broadcast on both sides", {3, 1, 2, 5}, {7, 5, 2}, matrices);
  product("matmul, vector by vector", {5}, {5}, [](const Inputs& in) { return sum(in["a"] * in["b"]); });
  product("matmul, vector by matrix", {5}, {5, 7},
          [](const Inputs& in) { return sum(as_column(in["a"]) * in["b"], 0); });
  product("matmul, matrix by vector", {3, 5}, {5},
          [](const Inputs& in) { return sum(in["a"] * as_row(in["b"]), 1); });
  product("matmul, vector by batch", {5}, {2, 5, 3},
          [](const Inputs& in) { return sum(as_column(in["a"]) * in["b"], 1); });
  product("matmul, batch by vector", {2, 3, 5}, {5},
          [](const Inputs& in) { return sum(in["a"] * in["b"], 2); });
}

void add_linear(Cases& cases) {
  const auto affine_map = [&](const std::string& name, const Shape& x, bool bias) {
    cases.add(name, [=](Case& c) {
      c.input("x", x);
      c.input("W", {5, 7});
      if (bias) c.input("b", {7});
      c.value = [=](const Inputs& in) { return linear(in["x"], in["W"], bias ? in["b"] : Tensor()); };
      c.oracle = [=](const Inputs& in) {
        const Tensor products = sum_of_products(in["x"].rank() == 1 ? as_row(in["x"]) : in["x"], in["W"]);
        const Tensor y = in["x"].rank() == 1 ? select(products, 0, 0) : products;
        return bias ? y + in["b"] : y;
      };
      c.refuses<ShapeError>("another number of channels", "[linear] weight expects 64 channels, input has 32",
                            [](const Inputs&) {
                              return linear(zeros({8, 16, 32}), zeros({64, 128}));
                            });
      c.refuses<ShapeError>("a weight that is not a matrix", "[linear]", [](const Inputs&) {
        return linear(zeros({3, 5}), zeros({5}));
      });
      c.refuses<ShapeError>("a bias of the wrong size", "[linear]", [](const Inputs&) {
        return linear(zeros({3, 5}), zeros({5, 7}), zeros({5}));
      });
      c.refuses<ShapeError>("a scalar", "[linear]", [](const Inputs&) {
        return linear(zeros({}), zeros({5, 7}));
      });
    });
  };
  affine_map("linear", {2, 3, 5}, true);
  affine_map("linear, without bias", {3, 5}, false);
  affine_map("linear, of a vector", {5}, true);
}

}  // namespace

void add_matmul_cases(Cases& cases) {
  add_matmul(cases);
  add_linear(cases);
}

}  // namespace fovea
