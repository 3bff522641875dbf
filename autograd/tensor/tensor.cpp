#include "fovea/autograd/tensor/tensor.h"

#include <new>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "autograd/kernels/strided.h"
#include "autograd/tensor/tensor_impl.h"

namespace fovea {
namespace detail {

Ref<Buffer> Buffer::allocate(const Shape& shape, std::size_t element_size) {
  const std::size_t bytes = static_cast<std::size_t>(numel(shape)) * element_size;
  try {
    auto* buffer = ::new (pool::allocate(sizeof(Buffer) + bytes)) Buffer;
    buffer->bytes = bytes;
    return Ref<Buffer>(buffer);
  } catch (const MemoryError&) {
    fail<MemoryError>("[memory] an array of shape {} needs {} bytes, which the system does not have",
                      to_string(shape), with_commas(static_cast<std::int64_t>(bytes)));
  }
}

void retain(Buffer* buffer) noexcept { buffer->references.fetch_add(1, std::memory_order_relaxed); }
void release(Buffer* buffer) noexcept {
  if (buffer->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::size_t bytes = buffer->bytes;
  buffer->~Buffer();
  pool::deallocate(buffer, sizeof(Buffer) + bytes);
}

void retain(GradAccumulator* accumulator) noexcept {
  accumulator->references.fetch_add(1, std::memory_order_relaxed);
}
void release(GradAccumulator* accumulator) noexcept {
  if (accumulator->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete accumulator;
}

void retain(TensorImpl* impl) noexcept { impl->references.fetch_add(1, std::memory_order_relaxed); }
void release(TensorImpl* impl) noexcept {
  if (impl->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete impl;
}

TensorImpl::~TensorImpl() {
  if (!accumulator) return;
  Tensor dropped;  // destroyed outside the lock
  std::lock_guard lock(accumulator->mutex);
  accumulator->dropped = true;
  std::swap(dropped, accumulator->gradient);
}

TensorImpl& impl_of(const Tensor& x) {
  TensorImpl* impl = TensorAccess::impl(x);
  if (!impl) throw Error("[tensor] an undefined Tensor was used: it has no value yet");
  return *impl;
}

Tensor view_of(const Tensor& x, Shape shape, Strides strides, std::int64_t offset) {
  const TensorImpl& base = impl_of(x);
  (void)numel(shape);  // checks it
  Ref<TensorImpl> view(new TensorImpl);
  view->dtype = base.dtype;
  view->buffer = base.buffer;
  view->offset = offset;
  view->shape = std::move(shape);
  view->strides = std::move(strides);
  return TensorAccess::handle(std::move(view));
}

namespace {

template <class T>
const T* typed_data(const Tensor& x) {
  const TensorImpl& impl = impl_of(x);
  if (impl.dtype != dtype_of<T>) {
    fail<DtypeError>("[data] the tensor {} holds {}, read as {}", to_string(impl.shape), name_of(impl.dtype),
                     name_of(dtype_of<T>));
  }
  return reinterpret_cast<const T*>(impl.buffer->data()) + impl.offset;
}

template <class T>
T* writable_data(const Tensor& x) {
  const T* data = typed_data<T>(x);
  const TensorImpl& impl = impl_of(x);
  if (impl.node && !is_leaf(*impl.node)) {
    fail<GraphError>(
        "[mutable_data] the tensor {} was computed by '{}' and recorded: write to a clone or detach it",
        to_string(impl.shape), op_name(*impl.node));
  }
  check_no_rule_reads(*impl.buffer);
  impl.buffer->version.fetch_add(1, std::memory_order_relaxed);
  return const_cast<T*>(data);
}

// The element that `position`, offset by strides, points to.
double element(const TensorImpl& impl, std::int64_t offset) {
  return dispatch(impl.dtype, [&]<class T>() {
    return static_cast<double>(reinterpret_cast<const T*>(impl.buffer->data())[impl.offset + offset]);
  });
}

}  // namespace
}  // namespace detail

using detail::impl_of;

const Shape& Tensor::shape() const { return impl_of(*this).shape; }
const Strides& Tensor::strides() const { return impl_of(*this).strides; }
Dtype Tensor::dtype() const { return impl_of(*this).dtype; }
std::int64_t Tensor::numel() const { return fovea::numel(shape()); }
std::int64_t Tensor::size(Axis axis) const {
  return shape()[static_cast<std::size_t>(normalize_axis("size", axis, rank()))];
}
bool Tensor::is_contiguous() const { return kernels::is_contiguous(shape(), strides()); }

template <>
const float* Tensor::data<float>() const {
  return detail::typed_data<float>(*this);
}
template <>
const double* Tensor::data<double>() const {
  return detail::typed_data<double>(*this);
}
template <>
float* Tensor::mutable_data<float>() {
  return detail::writable_data<float>(*this);
}
template <>
double* Tensor::mutable_data<double>() {
  return detail::writable_data<double>(*this);
}

double Tensor::item() const {
  if (numel() != 1) {
    fail<ShapeError>("[item] one element asked of a tensor of shape {}: use at({{...}})", to_string(shape()));
  }
  return detail::element(*impl_, 0);
}

double Tensor::at(std::initializer_list<std::int64_t> position) const {
  const Shape asked(position);
  bool inside = asked.size() == rank();
  std::int64_t offset = 0;
  for (std::size_t axis = 0; inside && axis < rank(); ++axis) {
    inside = asked[axis] >= 0 && asked[axis] < shape()[axis];
    offset += asked[axis] * strides()[axis];
  }
  if (!inside) {
    fail<IndexError>("[at] position {} is not inside shape {}", to_string(asked), to_string(shape()));
  }
  return detail::element(*impl_, offset);
}

std::vector<double> Tensor::to_vector() const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(numel()));
  kernels::for_each_offset(shape(), strides(),
                           [&](std::int64_t offset) { values.push_back(detail::element(*impl_, offset)); });
  return values;
}

Tensor Tensor::detach() const {
  const detail::TensorImpl& impl = impl_of(*this);
  return detail::view_of(*this, impl.shape, impl.strides, impl.offset);
}

bool Tensor::is_leaf() const {
  const detail::TensorImpl& impl = impl_of(*this);
  return !impl.node || detail::is_leaf(*impl.node);
}

bool Tensor::requires_grad() const { return static_cast<bool>(impl_of(*this).node); }

Tensor& Tensor::set_requires_grad(bool on) {
  detail::TensorImpl& impl = impl_of(*this);
  if (!is_leaf()) {
    fail<GraphError>("[set_requires_grad] the tensor {} was computed by '{}' and recorded: detach it first",
                     to_string(impl.shape), op_name(*impl.node));
  }
  if (on && !impl.node) {
    impl.accumulator = detail::Ref<detail::GradAccumulator>(new detail::GradAccumulator);
    impl.node = detail::make_leaf(impl);
  } else if (!on) {
    set_grad({});
    impl.node = {};
    impl.accumulator = {};
  }
  return *this;
}

Tensor Tensor::grad() const {
  const detail::TensorImpl& impl = impl_of(*this);
  if (!is_leaf()) {
    fail<GraphError>(
        "[grad] only leaves keep a gradient, and this tensor {} was computed by '{}': use "
        "grad(outputs, inputs)",
        to_string(impl.shape), op_name(*impl.node));
  }
  if (!impl.accumulator) return {};
  std::lock_guard lock(impl.accumulator->mutex);
  return impl.accumulator->gradient;
}

void Tensor::set_grad(Tensor gradient) const {
  const detail::TensorImpl& impl = impl_of(*this);
  if (!impl.accumulator) {
    if (!gradient.defined()) return;
    fail<GraphError>(
        "[set_grad] the tensor {} is not a leaf that requires a gradient: call set_requires_grad first",
        to_string(impl.shape));
  }
  if (gradient.defined() && (gradient.shape() != impl.shape || gradient.dtype() != impl.dtype)) {
    fail<ShapeError>("[set_grad] a gradient {} {} for a tensor {} {}", name_of(gradient.dtype()),
                     to_string(gradient.shape()), name_of(impl.dtype), to_string(impl.shape));
  }
  std::lock_guard lock(impl.accumulator->mutex);
  std::swap(impl.accumulator->gradient, gradient);
}

std::uint64_t Tensor::version() const {
  return impl_of(*this).buffer->version.load(std::memory_order_relaxed);
}

}  // namespace fovea
