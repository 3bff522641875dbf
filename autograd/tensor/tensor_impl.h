#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "autograd/base/pool.h"
#include "fovea/autograd/base/ref.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea::detail {

/// What a tensor asks of the node that computed it. The graph, a room further up, defines these.
struct Node;
struct TensorImpl;
FOVEA_API void retain(Node* node) noexcept;
FOVEA_API void release(Node* node) noexcept;
bool is_leaf(const Node& node);
const char* op_name(const Node& node);
/// The node of a leaf with that value and gradient accumulator.
Ref<Node> make_leaf(const TensorImpl& value);

/// An array of bytes, shared by every view of it. The elements follow this header, aligned as it is.
struct alignas(pool::alignment) Buffer {
  std::atomic<std::int32_t> references{0};
  std::atomic<std::uint64_t> version{0};
  std::size_t bytes = 0;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  static Ref<Buffer> allocate(std::size_t bytes);
};
void retain(Buffer* buffer) noexcept;
void release(Buffer* buffer) noexcept;

/// A leaf's gradient, reached by the leaf's handles and by the graph's edge to it. It belongs to the handles:
/// when the last one goes, the gradient is dropped, so a gradient that has a graph of its own keeps nothing
/// alive in a circle.
struct GradAccumulator {
  std::atomic<std::int32_t> references{0};
  std::mutex mutex;
  bool dropped = false;
  Tensor gradient;
};
void retain(GradAccumulator* slot) noexcept;
void release(GradAccumulator* slot) noexcept;

/// What a Tensor points to.
struct TensorImpl {
  std::atomic<std::int32_t> references{0};
  Dtype dtype = f32;
  std::uint32_t output = 0;  // which output of its node this is
  std::int64_t offset = 0;   // of the first element, in elements
  Ref<Buffer> buffer;
  Ref<Node> node;             // none: outside the graph
  Ref<GradAccumulator> slot;  // leaves only
  Shape shape;
  Strides strides;

  ~TensorImpl();
  static void* operator new(std::size_t bytes) { return pool::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { pool::deallocate(memory, bytes); }
};

/// The impl behind a handle. Throws: Error if there is none.
TensorImpl& impl_of(const Tensor& x);

/// A view of x's array, outside the graph.
Tensor view_of(const Tensor& x, Shape shape, Strides strides, std::int64_t offset);

/// Elements of a tensor that its op is just computing: writing them is not a change of version.
template <class T>
T* fresh_data(const Tensor& x) {
  TensorImpl& impl = *x.impl();
  return reinterpret_cast<T*>(impl.buffer->data()) + impl.offset;
}

}  // namespace fovea::detail
