#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "autograd/base/pool.h"
#include "fovea/autograd/base/ref.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea::detail {

// What a tensor asks of the node that computed it. The graph defines these.
struct Node;
struct TensorImpl;
struct Buffer;
FOVEA_API void retain(Node* node) noexcept;
FOVEA_API void release(Node* node) noexcept;
bool is_leaf(const Node& node);
const char* op_name(const Node& node);
/// Throws: GraphError if a rule that runs on this thread was given the array to read.
void check_no_rule_reads(const Buffer& array);
/// The node of a leaf with that value and gradient accumulator.
Ref<Node> make_leaf(const TensorImpl& value);

/// An array of bytes, shared by every view of it. The elements follow this header, aligned as it is.
struct alignas(pool::alignment) Buffer {
  std::atomic<std::int32_t> references{0};
  std::atomic<std::uint64_t> version{0};
  std::size_t bytes = 0;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  /// Room for the elements of a shape. Throws: ShapeError, as `numel`; MemoryError.
  static Ref<Buffer> allocate(const Shape& shape, std::size_t element_size);
};
void retain(Buffer* buffer) noexcept;
void release(Buffer* buffer) noexcept;

/// The gradient of a leaf, which backward passes add to. The leaf's handles and the leaf's node share it, and
/// it belongs to the handles: when the last one goes, the gradient is dropped. So a gradient that has a graph
/// of its own, which leads back to the leaf, is no cycle of ownership.
struct GradAccumulator {
  std::atomic<std::int32_t> references{0};
  std::mutex mutex;
  bool dropped = false;
  Tensor gradient;
};
void retain(GradAccumulator* accumulator) noexcept;
void release(GradAccumulator* accumulator) noexcept;

/// What a Tensor points to.
struct TensorImpl {
  std::atomic<std::int32_t> references{0};
  Dtype dtype = f32;
  std::uint32_t output = 0;  // which output of its node this is
  std::int64_t offset = 0;   // of the first element, in elements
  Ref<Buffer> buffer;
  Ref<Node> node;                    // none: outside the graph
  Ref<GradAccumulator> accumulator;  // leaves only
  Shape shape;
  Strides strides;

  ~TensorImpl();
  static void* operator new(std::size_t bytes) { return pool::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { pool::deallocate(memory, bytes); }
};

/// What lies between a handle and its impl.
struct TensorAccess {
  static TensorImpl* impl(const Tensor& x) noexcept { return x.impl_.get(); }
  static Tensor handle(Ref<TensorImpl> impl) noexcept { return Tensor(std::move(impl)); }
};

/// The impl behind a handle. Throws: Error if the Tensor is undefined.
TensorImpl& impl_of(const Tensor& x);

/// A view of the array of x, outside the graph.
Tensor view_of(const Tensor& x, Shape shape, Strides strides, std::int64_t offset);

/// The elements of a tensor that its op is just computing, for writing without raising the version.
template <class T>
T* fresh_data(const Tensor& x) {
  TensorImpl& impl = impl_of(x);
  return reinterpret_cast<T*>(impl.buffer->data()) + impl.offset;
}

}  // namespace fovea::detail
