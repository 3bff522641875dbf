#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// The keys and values that one attention layer has computed so far. While generating, the next position then
/// costs one row of attention instead of all of them.
///
/// No gradient flows through a cache. Ownership: a copy has arrays of its own, so that several continuations
/// of one prompt can be generated.
class FOVEA_API KvCache {
 public:
  /// Makes an empty cache with room for `capacity` positions. Throws: ValueError for a negative size.
  KvCache(std::int64_t batch, std::int64_t heads, std::int64_t capacity, std::int64_t head_size,
          Dtype dtype = f32);
  KvCache(const KvCache& other);
  KvCache(KvCache&&) noexcept = default;
  KvCache& operator=(KvCache other) noexcept;
  ~KvCache() = default;

  std::int64_t batch() const { return keys_.size(0); }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return keys_.size(2); }

  /// Forgets all positions from `length` on. Throws: ValueError if there are fewer.
  void truncate(std::int64_t length);

  /// Makes room for at least `capacity` positions, and keeps those that the cache holds.
  void reserve(std::int64_t capacity);

  struct Kept {
    Tensor keys, values;  ///< (B, Hk, length, D), views of the cache
  };
  /// Appends T positions, and returns all that the cache holds now.
  ///
  /// Shapes: keys and values (B, Hk, T, D). Throws: ShapeError; DtypeError; ValueError if there is no room
  /// for T more; GraphError if they require a gradient: generate under NoGrad. The cache is unchanged then.
  Kept append(const Tensor& keys, const Tensor& values);

 private:
  Tensor keys_, values_;  // (B, Hk, capacity, D)
  std::int64_t length_ = 0;
};

}  // namespace fovea
