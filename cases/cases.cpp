#include "cases/cases.h"

#include <algorithm>
#include <iterator>

#include "autograd/base/fail.h"

namespace fovea {

void add_arithmetic_cases(Cases& cases);
void add_pointwise_cases(Cases& cases);
void add_activations_cases(Cases& cases);
void add_compare_cases(Cases& cases);
void add_reduce_cases(Cases& cases);
void add_shape_cases(Cases& cases);
void add_matmul_cases(Cases& cases);
void add_embedding_cases(Cases& cases);
void add_softmax_cases(Cases& cases);
void add_cross_entropy_cases(Cases& cases);
void add_losses_cases(Cases& cases);
void add_layer_norm_cases(Cases& cases);
void add_rms_norm_cases(Cases& cases);
void add_rotary_cases(Cases& cases);
void add_attention_cases(Cases& cases);
void add_dropout_cases(Cases& cases);

namespace {

struct Family {
  const char* name;
  void (*add)(Cases&);
};

constexpr Family families[] = {
    {"arithmetic", add_arithmetic_cases},   {"pointwise", add_pointwise_cases},
    {"activations", add_activations_cases}, {"compare", add_compare_cases},
    {"reduce", add_reduce_cases},           {"shape", add_shape_cases},
    {"matmul", add_matmul_cases},           {"embedding", add_embedding_cases},
    {"softmax", add_softmax_cases},         {"cross_entropy", add_cross_entropy_cases},
    {"losses", add_losses_cases},           {"layer_norm", add_layer_norm_cases},
    {"rms_norm", add_rms_norm_cases},       {"rotary", add_rotary_cases},
    {"attention", add_attention_cases},     {"dropout", add_dropout_cases},
};

}  // namespace

std::vector<std::string> case_families() {
  std::vector<std::string> names;
  for (const Family& family : families) names.emplace_back(family.name);
  return names;
}

std::vector<Case> cases_of(const std::string& family) {
  const auto found = std::ranges::find(families, family, &Family::name);
  if (found == std::end(families)) fail<ValueError>("[cases] there is no family '{}'", family);
  Cases cases(family);
  found->add(cases);
  return std::move(cases.rows);
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Family& family : families) {
    std::vector<Case> rows = cases_of(family.name);
    std::ranges::move(rows, std::back_inserter(all));
  }
  return all;
}

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

}  // namespace fovea
