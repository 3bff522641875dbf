#include "cases/case_inputs.h"

#include <algorithm>
#include <numeric>

#include "fovea/autograd/base/rng.h"

namespace fovea::cases {
namespace {

Tensor reversed(const Tensor& x) {
  Axes order = std::initializer_list<std::int64_t>{};
  for (std::size_t axis = x.rank(); axis-- > 0;) order.push_back(static_cast<std::int64_t>(axis));
  return permute(x, order);
}

Tensor transposed(const Tensor& x) { return x.rank() < 2 ? x : transpose(x, -2, -1); }

// The elements of x are every second one of the leaf's last axis, and all but the first along the axis before
// it. The other elements of the leaf are large numbers, so that a wrong stride shows.
Tensor store_sliced(const Tensor& x) {
  if (x.rank() == 0) return x;
  const std::int64_t n = x.size(-1);
  const Tensor filler = full(x.shape(), 1000, x.dtype());
  Shape interleaved = x.shape();
  interleaved.back() = 2 * n;
  const Tensor wide = reshape(stack({filler, x}, static_cast<std::int64_t>(x.rank())), interleaved);
  return x.rank() == 1 ? wide : concat({slice(wide, -2, 0, std::min<std::int64_t>(1, x.size(-2))), wide}, -2);
}
Tensor view_sliced(const Tensor& leaf, const Shape& shape) {
  if (shape.empty()) return leaf;
  const std::int64_t wide = 2 * shape.back();
  const Tensor columns = slice(leaf, -1, std::min<std::int64_t>(1, wide), wide, 2);
  return shape.size() == 1 ? columns
                           : slice(columns, -2, leaf.size(-2) - shape[shape.size() - 2], leaf.size(-2));
}

// The first position of an axis, which the op sees repeated along that axis.
Tensor first_of_axis(const Tensor& x, std::int64_t axis) {
  return x.rank() == 0 ? x : slice(x, axis, 0, std::min<std::int64_t>(1, x.size(axis)));
}

constexpr Layout layouts[] = {
    {"contiguous", [](const Tensor& x) { return x; }, [](const Tensor& leaf, const Shape&) { return leaf; }},
    {"transposed", transposed, [](const Tensor& leaf, const Shape&) { return transposed(leaf); }},
    {"axes reversed", reversed, [](const Tensor& leaf, const Shape&) { return reversed(leaf); }},
    {"sliced", store_sliced, view_sliced},
    {"broadcast along the last axis", [](const Tensor& x) { return first_of_axis(x, -1); }, broadcast_to},
    {"broadcast along the first axis", [](const Tensor& x) { return first_of_axis(x, 0); }, broadcast_to},
};

}  // namespace

const Layout& Arrangement::of(std::size_t input) const {
  return layouts[(first + input * step) % std::size(layouts)];
}

const Arrangement& contiguous_arrangement() {
  static const Arrangement contiguous{layouts[0].name};
  return contiguous;
}

std::vector<Arrangement> arrangements(std::size_t inputs) {
  std::vector<Arrangement> all;
  for (std::size_t i = 0; i < std::size(layouts); ++i) all.push_back({layouts[i].name, i, 0});
  if (inputs > 1) {
    all.push_back({"contiguous, then transposed and so on", 0, 1});
    all.push_back({"sliced, then broadcast and so on", 3, 1});
  }
  return all;
}

Shape Resize::operator()(Shape shape) const {
  std::ranges::replace(shape, from, to);
  return shape;
}

// Each number lies in a cell of its own of a shuffled grid, somewhere near the middle of the cell.
std::vector<NamedTensor> draw(const Case& row, std::uint64_t seed, const Resize& resize) {
  Rng rng(seed);
  std::int64_t total = 2;
  for (const Case::Input& input : row.inputs) total += numel(resize(input.shape));
  total += total % 2;  // an even number of grid cells, so that none has its centre at 0
  std::vector<std::int64_t> cells(static_cast<std::size_t>(total));
  std::iota(cells.begin(), cells.end(), 0);
  for (std::int64_t i = total - 1; i > 0; --i) {
    std::swap(cells[static_cast<std::size_t>(i)], cells[static_cast<std::size_t>(rng.uniform_int(i + 1))]);
  }
  std::vector<NamedTensor> drawn;
  auto cell = cells.begin();
  for (const Case::Input& input : row.inputs) {
    const Shape shape = resize(input.shape);
    std::vector<double> values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values) {
      const double position =
          (static_cast<double>(*cell++) + 0.25 + 0.5 * rng.uniform()) / static_cast<double>(total);
      value = static_cast<float>(input.domain.low + (input.domain.high - input.domain.low) * position);
    }
    drawn.push_back({input.name, from_values(values, shape, f64)});
  }
  return drawn;
}

Tensor random_cotangent(const Tensor& y) {
  Rng rng(7);
  return to(randn(y.shape(), rng, f32), y.dtype());
}

Arranged::Arranged(const std::vector<NamedTensor>& drawn, const Arrangement& arrangement, Dtype dtype)
    : arrangement_(arrangement) {
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto& [name, x] = drawn[i];
    leaves.push_back({name, clone(to(arrangement.of(i).store(x), dtype))});
    shapes_.push_back(x.shape());
  }
}

Inputs Arranged::view(std::span<const NamedTensor> stored) const {
  std::vector<NamedTensor> seen;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    seen.push_back({stored[i].name, arrangement_.of(i).view(stored[i].tensor, shapes_[i])});
  }
  return Inputs(std::move(seen));
}

std::vector<Tensor> Arranged::targets() {
  std::vector<Tensor> all;
  for (NamedTensor& leaf : leaves) all.push_back(leaf.tensor.set_requires_grad());
  return all;
}

std::vector<Tensor> Arranged::gradients(const NamedFunction& f, bool create_graph) {
  const std::vector<Tensor> leaves_of_graph = targets();
  const Tensor y = f(view());
  return grad({y}, leaves_of_graph,
              {.gradients = {random_cotangent(y)}, .create_graph = create_graph, .allow_unused = true});
}

}  // namespace fovea::cases
