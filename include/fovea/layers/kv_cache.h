#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// The keys and values of the positions that one attention layer has seen, kept while generating, so that the
/// next position costs one row of attention instead of all of them.
///
/// No gradient flows through a cache. Ownership: a copy has arrays of its own, to go on from one prompt in
/// several ways.
class FOVEA_API KvCache {
 public:
  /// Room for a number of positions. Throws: ValueError for a negative size.
  KvCache(std::int64_t batch, std::int64_t heads, std::int64_t capacity, std::int64_t head_size,
          Dtype dtype = f32);
  KvCache(const KvCache& other);
  KvCache(KvCache&&) noexcept = default;
  KvCache& operator=(KvCache other) noexcept;
  ~KvCache() = default;

  std::int64_t batch() const { return keys_.size(0); }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return keys_.size(2); }

  /// Forgets all positions from `length` on. Throws: ValueError if there are not as many.
  void truncate(std::int64_t length);

  struct Kept {
    Tensor keys, values;  ///< (B, Hk, length, D), views of the cache
  };
  /// Keeps further positions, and returns all.
  ///
  /// Shapes: keys and values (B, Hk, T, D). Throws: ShapeError; DtypeError; ValueError if there is no room
  /// for T more; GraphError if they require a gradient: generate under NoGrad. Nothing has changed then.
  Kept append(const Tensor& keys, const Tensor& values);

 private:
  Tensor keys_, values_;  // (B, Hk, capacity, D)
  std::int64_t length_ = 0;
};

}  // namespace fovea
