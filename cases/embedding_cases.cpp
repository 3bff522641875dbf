#include <cmath>
#include <vector>

#include "cases/cases.h"

namespace fovea {
namespace {

// Ids of that shape. Some occur twice and, if the vocabulary is large enough, some do not occur.
Indices spread_ids(const Shape& shape, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < numel(shape); ++i) ids.push_back(i * i % vocabulary);
  return Indices(shape, ids);
}

void add_lookups(Cases& cases) {
  for (const Shape& shape : {Shape{2, 3}, Shape{5}, Shape{}, Shape{2, 0}}) {
    const bool empty_lookup = numel(shape) == 0;
    cases.add("embedding, ids " + to_string(shape), [=](Case& c) {
      c.input("table", {7, 3});
      c.not_empty = {7};
      // A lookup of no ids has no elements to check, so the table is added to it.
      const auto with_rest = [=](const Tensor& y, const Tensor& table) {
        return empty_lookup ? sum(y) + table : y;
      };
      c.value = [=](const Inputs& in) {
        const Tensor& table = in["table"];
        return with_rest(embedding(table, spread_ids(shape, table.size(0))), table);
      };
      c.oracle = [=](const Inputs& in) {
        const Tensor& table = in["table"];
        const Indices ids = spread_ids(shape, table.size(0));
        std::vector<double> values;
        for (const std::int64_t id : ids.values()) {
          for (std::int64_t channel = 0; channel < table.size(1); ++channel)
            values.push_back(table.at({id, channel}));
        }
        Shape result = shape;
        result.push_back(table.size(1));
        return with_rest(from_values(values, result, f64), table);
      };
      c.refuses<IndexError>("an id beyond the vocabulary",
                            "[embedding] id 70 at position (1, 1) is outside the vocabulary of 65",
                            [](const Inputs&) {
                              return embedding(zeros({65, 3}), Indices{{0, 64}, {3, 70}});
                            });
      c.refuses<IndexError>("a negative id", "[embedding] id -1 at position (2,)", [](const Inputs& in) {
        return embedding(in["table"], Indices{0, 1, -1});
      });
      c.refuses<ShapeError>("a table that is not a matrix", "[embedding]",
                            [](const Inputs&) { return embedding(zeros({7}), Indices{0}); });
    });
  }
}

void add_padding(Cases& cases) {
  cases.add("embedding, with padding", [](Case& c) {
    c.input("table", {7, 3});
    c.not_empty = {7};
    c.value = [](const Inputs& in) {
      return embedding(in["table"], spread_ids({2, 3}, in["table"].size(0)), {.padding = 0});
    };
    c.oracle = [](const Inputs& in) {
      const Tensor& table = in["table"];
      const Indices ids = spread_ids({2, 3}, table.size(0));
      std::vector<double> values;
      for (const std::int64_t id : ids.values()) {
        for (std::int64_t channel = 0; channel < table.size(1); ++channel)
          values.push_back(id == 0 ? 0 : table.at({id, channel}));
      }
      return from_values(values, {2, 3, table.size(1)}, f64);
    };
    c.example({.name = "NaN in the row of the padding id",
               .inputs = {{"table", tensor({{1, 2}, {std::nan(""), std::nan("")}, {3, 4}}, f64)}},
               .value = {0, 0, 3, 4, 0, 0, 1, 2},
               .cotangent = {3, 5, 7, 11, 13, 17, 19, 23},
               .gradients = {{"table", {19, 23, 0, 0, 7, 11}}},
               .of = [](const Inputs& in) {
                 return embedding(in["table"], {1, 2, 1, 0}, {.padding = 1});
               }});
    c.refuses<IndexError>("a padding id beyond the vocabulary", "[embedding] the padding id 3",
                          [](const Inputs&) {
                            return embedding(zeros({3, 5}), {0}, {.padding = 3});
                          });
  });
}

}  // namespace

void add_embedding_cases(Cases& cases) {
  add_lookups(cases);
  add_padding(cases);
}

}  // namespace fovea
