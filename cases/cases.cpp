#include "cases/cases.h"

#include <algorithm>
#include <iterator>

#include "autograd/base/fail.h"
#include "cases/case_list.h"

namespace fovea {
namespace {

// The rows of the file with that name.
template <class Table>
auto rows_of(const std::vector<detail::CaseFile<Table>>& files, const std::string& name) {
  const auto file = std::ranges::find(files, name, &detail::CaseFile<Table>::name);
  if (file == files.end()) fail<ValueError>("[cases] there is no file '{}_cases.cpp'", name);
  Table table;
  file->add_rows(table);
  return std::move(table.rows);
}

template <class Table>
auto rows_of_all(const std::vector<detail::CaseFile<Table>>& files) {
  decltype(Table::rows) all;
  for (const auto& file : files) std::ranges::move(rows_of(files, file.name), std::back_inserter(all));
  return all;
}

}  // namespace

std::vector<std::string> case_families() {
  std::vector<std::string> names;
  for (const auto& file : detail::op_case_files()) names.push_back(file.name);
  return names;
}

std::vector<Case> cases_of(const std::string& family) { return rows_of(detail::op_case_files(), family); }
std::vector<Case> all_cases() { return rows_of_all(detail::op_case_files()); }

std::vector<LayerCase> layer_cases_of(const std::string& file) {
  return rows_of(detail::layer_case_files(), file);
}
std::vector<LayerCase> all_layer_cases() { return rows_of_all(detail::layer_case_files()); }

Tensor map_elements(const Tensor& x, const std::function<double(double)>& f) {
  std::vector<double> values = x.to_vector();
  std::ranges::transform(values, values.begin(), f);
  return from_values(values, x.shape(), f64);
}

Tensor map_elements(const Tensor& a, const Tensor& b, const std::function<double(double, double)>& f) {
  const Shape shape = broadcast_shapes("oracle", a.shape(), b.shape());
  std::vector<double> values = broadcast_to(a, shape).to_vector();
  std::ranges::transform(values, broadcast_to(b, shape).to_vector(), values.begin(), f);
  return from_values(values, shape, f64);
}

Tensor tensor_from(const Shape& shape, const std::function<double(const Shape&)>& element) {
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

}  // namespace fovea
