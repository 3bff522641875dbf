#include <algorithm>
#include <optional>

#include "autograd/graph/accumulate.h"
#include "autograd/ops/elementwise.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::impl_of;
using detail::view_of;

namespace {

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

// The strides of a view of x in another shape of as many elements; nothing if only a copy can have it.
std::optional<Strides> strides_for(const Tensor& x, const Shape& shape) {
  if (x.is_contiguous() || x.numel() == 0) return contiguous_strides(shape);
  // Axes of x that lie row-major among themselves are matched, from the back, with axes of the new shape.
  Strides strides(shape.size(), 1);
  std::size_t next = shape.size();
  for (std::size_t axis = x.rank(); axis-- > 0;) {
    if (x.shape()[axis] == 1) continue;
    const std::int64_t step = x.strides()[axis];
    std::int64_t run = x.shape()[axis];
    while (axis > 0 && (x.shape()[axis - 1] == 1 || x.strides()[axis - 1] == step * run)) {
      run *= x.shape()[--axis];
    }
    std::int64_t filled = 1;
    while (next > 0 && filled < run) {
      strides[--next] = step * filled;
      filled *= shape[next];
    }
    if (filled != run) return std::nullopt;
  }
  return strides;
}

// A position on an axis that may be counted from the back.
std::int64_t from_front(std::int64_t position, std::int64_t size) {
  return position < 0 ? position + size : position;
}

bool has_negative(const Shape& shape) {
  return std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; });
}

Shape infer_size(const Tensor& x, const Shape& asked) {
  Shape shape = asked;
  const auto unknown = std::ranges::find(shape, -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    const std::int64_t known = has_negative(shape) ? 0 : numel(shape);
    *unknown = known > 0 && x.numel() % known == 0 ? x.numel() / known : -1;
  }
  if (has_negative(shape) || numel(shape) != x.numel()) {
    fail<ShapeError>("[reshape] {} elements of shape {} do not fit shape {}", x.numel(), to_string(x.shape()),
                     to_string(asked));
  }
  return shape;
}

// Copies src into the elements of dst, which has its shape.
void copy_into(const Tensor& dst, const Tensor& src) {
  const kernels::Loops<2> loops(dst.shape(), {&dst.strides(), &src.strides()});
  dispatch(dst.dtype(), [&]<class T>() {
    kernels::map(
        loops, detail::fresh_data<T>(dst), [](const detail::Block<T>& v) { return v; }, src.data<T>());
  });
}

Tensor copy_of(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  copy_into(y, x);
  return y;
}

// The region of a row-major tensor that `slice`, from `begin` by `step`, and `select` show.
Region slice_region(const Shape& shape, std::size_t axis, std::int64_t begin, std::int64_t step) {
  Strides strides = contiguous_strides(shape);
  const std::int64_t offset = begin * strides[axis];
  strides[axis] *= step;
  return {offset, std::move(strides)};
}

// A view of a region of x. Its gradient is added to that region alone.
Tensor view_region(const Tensor& x, const Shape& shape, const Region& region) {
  const Tensor base = contiguous(x);
  return record("region", view_of(base, shape, region.strides, impl_of(base).offset + region.offset), {base},
                {}, [region](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {{dy, region}};
                });
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& asked) {
  const Shape shape = infer_size(x, asked);
  const std::optional<Strides> strides = strides_for(x, shape);
  const Tensor y = strides ? view_of(x, shape, *strides, impl_of(x).offset)
                           : view_of(copy_of(x), shape, contiguous_strides(shape), 0);
  return record("reshape", y, {x}, {},
                [](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  return {reshape(dy, needs.shape(0))};
                });
}

Tensor permute(const Tensor& x, const Axes& order) {
  const std::size_t rank = x.rank();
  Shape shape;
  Strides strides;
  Axes inverse = order;
  SmallVector<bool, 5> used(rank, false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t axis = at(normalize_axis("permute", order[i], rank));
    if (used[axis] || order.size() != rank) {
      fail<ShapeError>("[permute] the order {} must name each of the {} axes once", to_string(Shape(order)),
                       rank);
    }
    used[axis] = true;
    inverse[axis] = static_cast<std::int64_t>(i);
    shape.push_back(x.shape()[axis]);
    strides.push_back(x.strides()[axis]);
  }
  if (order.size() != rank) {
    fail<ShapeError>("[permute] the order {} must name each of the {} axes once", to_string(Shape(order)),
                     rank);
  }
  return record("permute", view_of(x, shape, strides, impl_of(x).offset), {x}, {},
                [inverse](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {permute(dy, inverse)};
                });
}

Tensor transpose(const Tensor& x, Axis axis0, Axis axis1) {
  const std::size_t a = at(normalize_axis("transpose", axis0, x.rank()));
  const std::size_t b = at(normalize_axis("transpose", axis1, x.rank()));
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return record("transpose", view_of(x, shape, strides, impl_of(x).offset), {x}, {},
                [axis0, axis1](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {transpose(dy, axis0, axis1)};
                });
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (broadcast_shapes("broadcast_to", x.shape(), shape) != shape) {
    fail<ShapeError>("[broadcast_to] shape {} does not broadcast to {}", to_string(x.shape()),
                     to_string(shape));
  }
  const Strides strides = kernels::broadcast_strides(x.shape(), x.strides(), shape);
  return record("broadcast_to", view_of(x, shape, strides, impl_of(x).offset), {x}, {},
                [](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  return {sum_to(dy, needs.shape(0))};
                });
}

Tensor slice(const Tensor& x, Axis axis, Integer begin, Integer end, Integer step) {
  const std::size_t along = at(normalize_axis("slice", axis, x.rank()));
  const std::int64_t size = x.shape()[along];
  const std::int64_t first = from_front(begin, size), last = from_front(end, size);
  if (step < 1) fail<ValueError>("[slice] step {}: it must be at least 1", std::int64_t{step});
  if (first < 0 || last < first || last > size) {
    fail<ShapeError>("[slice] range {} to {} is not inside axis {} of shape {}", std::int64_t{begin},
                     std::int64_t{end}, std::int64_t{axis}, to_string(x.shape()));
  }
  // A longer step than the axis shows its first element too, and its stride might overflow.
  const std::int64_t by = std::min<std::int64_t>(step, std::max<std::int64_t>(size, 1));
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[along] = (last - first + by - 1) / by;
  strides[along] *= by;
  const Region region = slice_region(x.shape(), along, first, by);
  return record("slice", view_of(x, shape, strides, impl_of(x).offset + first * x.strides()[along]), {x}, {},
                [region](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {{dy, region}};
                });
}

Tensor select(const Tensor& x, Axis axis, Integer position) {
  const std::size_t along = at(normalize_axis("select", axis, x.rank()));
  const std::int64_t size = x.shape()[along];
  const std::int64_t index = from_front(position, size);
  if (index < 0 || index >= size) {
    fail<IndexError>("[select] position {} is outside axis {} of shape {}", std::int64_t{position},
                     std::int64_t{axis}, to_string(x.shape()));
  }
  Shape shape = x.shape();
  Strides strides = x.strides();
  Region region = slice_region(x.shape(), along, index, 1);
  for (SmallVector<std::int64_t, 5>* list : {&shape, &strides, &region.strides})
    list->erase(list->begin() + along);
  return record("select", view_of(x, shape, strides, impl_of(x).offset + index * x.strides()[along]), {x}, {},
                [region](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {{dy, region}};
                });
}

std::vector<Tensor> split(const Tensor& x, Axis axis, const Shape& sizes) {
  const std::int64_t size = x.size(axis);
  std::int64_t left = size;
  for (const std::int64_t piece : sizes) left = piece < 0 || piece > left ? -1 : left - piece;
  if (left != 0) {
    fail<ShapeError>("[split] sizes {} do not add up to {}, axis {} of shape {}", to_string(sizes), size,
                     std::int64_t{axis}, to_string(x.shape()));
  }
  std::vector<Tensor> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t piece : sizes) {
    pieces.push_back(slice(x, axis, begin, begin + piece));
    begin += piece;
  }
  return pieces;
}

std::vector<Tensor> detail::split_equally(const Tensor& x, Axis axis, Integer parts) {
  const std::int64_t size = x.size(axis);
  if (parts < 1 || size % parts != 0) {
    fail<ShapeError>("[split] axis {} of shape {} does not divide into {} equal pieces", std::int64_t{axis},
                     to_string(x.shape()), std::int64_t{parts});
  }
  return split(x, axis, Shape(at(parts), size / parts));
}

Tensor concat(std::span<const Tensor> tensors, Axis axis) {
  if (tensors.empty()) throw ShapeError("[concat] no tensors to join: at least one is needed");
  const Tensor& first = tensors[0];
  const std::size_t along = at(normalize_axis("concat", axis, first.rank()));
  Shape shape = first.shape();
  shape[along] = 0;
  std::vector<std::int64_t> begins{0};
  for (const Tensor& x : tensors) {
    detail::check_same_dtype("concat", first, x);
    Shape others = x.shape();
    if (others.size() == shape.size()) others[along] = shape[along];
    if (others != shape) {
      fail<ShapeError>("[concat] shapes {} and {} differ beyond axis {}", to_string(first.shape()),
                       to_string(x.shape()), std::int64_t{axis});
    }
    shape[along] += x.shape()[along];
    (void)numel(shape);  // checks the sum, which could overflow with many more tensors
    begins.push_back(shape[along]);
  }
  const Tensor y = empty(shape, first.dtype());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Region region = slice_region(shape, along, begins[i], 1);
    copy_into(view_of(y, tensors[i].shape(), region.strides, region.offset), tensors[i]);
  }
  return record(
      "concat", y, tensors, {},
      [along, begins](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
        Gradients gradients;
        for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
          gradients.push_back(needs[i] ? slice(dy, static_cast<std::int64_t>(along), begins[i], begins[i + 1])
                                       : Gradient());
        }
        return gradients;
      });
}
Tensor concat(std::initializer_list<Tensor> tensors, Axis axis) {
  return concat(std::span(tensors.begin(), tensors.size()), axis);
}

Tensor stack(std::span<const Tensor> tensors, Axis axis) {
  if (tensors.empty()) throw ShapeError("[stack] no tensors to join: at least one is needed");
  const std::int64_t along = normalize_axis("stack", axis, tensors[0].rank() + 1);
  std::vector<Tensor> layers;
  for (const Tensor& x : tensors) {
    if (x.shape() != tensors[0].shape()) {
      fail<ShapeError>("[stack] shapes {} and {} differ", to_string(tensors[0].shape()),
                       to_string(x.shape()));
    }
    Shape shape = x.shape();
    shape.insert(shape.begin() + along, 1);
    layers.push_back(reshape(x, shape));
  }
  return concat(layers, along);
}
Tensor stack(std::initializer_list<Tensor> tensors, Axis axis) {
  return stack(std::span(tensors.begin(), tensors.size()), axis);
}

Tensor Tensor::operator[](Integer i) const { return select(*this, 0, i); }

Tensor clone(const Tensor& x) {
  return record("clone", copy_of(x), {x}, {},
                [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients { return {dy}; });
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

Tensor to(const Tensor& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  const Tensor y = empty(x.shape(), dtype);
  const kernels::Loops<2> loops(x.shape(), {&y.strides(), &x.strides()});
  dispatch(dtype, [&]<class To>() {
    dispatch(x.dtype(), [&]<class From>() {
      kernels::map(
          loops, detail::fresh_data<To>(y),
          [](const detail::Block<From>& v) -> detail::Block<To> { return v.template cast<To>(); },
          x.data<From>());
    });
  });
  return record("to", y, {x}, {},
                [from = x.dtype()](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {to(dy, from)};
                });
}

namespace detail {

Tensor scatter_region(const Tensor& part, const Shape& shape, const Region& region) {
  const Tensor whole = zeros(shape, part.dtype());
  add_in_place(view_of(whole, part.shape(), region.strides, region.offset), part);
  return record("scatter_region", whole, {part}, {},
                [region](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  return {view_region(dy, needs.shape(0), region)};
                });
}

}  // namespace detail
}  // namespace fovea
