#include "fovea/layers/kv_cache.h"

#include <algorithm>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

// Copies rows (B, Hk, T, D) into (B, Hk, capacity, D), from position `at` on.
void write_rows(Tensor& to, const Tensor& from, std::int64_t at) {
  const Tensor rows = contiguous(from);
  const std::int64_t d = to.size(3), stride = to.size(2) * d, n = rows.size(2) * d;
  dispatch(to.dtype(), [&]<class T>() {
    const T* in = rows.data<T>();
    T* out = to.mutable_data<T>() + at * d;
    for (std::int64_t head = 0; head < to.size(0) * to.size(1); ++head) {
      std::copy_n(in + head * n, n, out + head * stride);
    }
  });
}

void check_rows(const char* what, const Tensor& x, const Tensor& kept) {
  Shape expected = kept.shape();
  if (x.rank() == 4) expected[2] = x.size(2);
  if (x.shape() != expected) {
    fail<ShapeError>("[KvCache] {} {} do not fit the cache, whose (B, Hk, capacity, D) is {}", what,
                     to_string(x.shape()), to_string(kept.shape()));
  }
  if (x.dtype() != kept.dtype()) {
    fail<DtypeError>("[KvCache] {} are {}, and the cache is {}: make the cache with the dtype of the model",
                     what, name_of(x.dtype()), name_of(kept.dtype()));
  }
  if (x.requires_grad()) {
    fail<GraphError>(
        "[KvCache] {} require a gradient, and no gradient flows through a cache: generate under NoGrad",
        what);
  }
}

}  // namespace

KvCache::KvCache(std::int64_t batch, std::int64_t heads, std::int64_t capacity, std::int64_t head_size,
                 Dtype dtype) {
  const Shape shape{batch, heads, capacity, head_size};
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {
    fail<ValueError>("[KvCache] (B, Hk, capacity, D) is {}: no size can be negative", to_string(shape));
  }
  keys_ = zeros(shape, dtype);
  values_ = zeros(shape, dtype);
}

KvCache::KvCache(const KvCache& other)
    : keys_(clone(other.keys_)), values_(clone(other.values_)), length_(other.length_) {}

KvCache& KvCache::operator=(KvCache other) noexcept {
  std::swap(keys_, other.keys_);
  std::swap(values_, other.values_);
  length_ = other.length_;
  return *this;
}

void KvCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_) {
    fail<ValueError>("[KvCache] can't keep {} positions: the cache holds {}", length, length_);
  }
  length_ = length;
}

void KvCache::reserve(std::int64_t capacity) {
  if (capacity <= this->capacity()) return;
  for (Tensor* kept : {&keys_, &values_}) {
    Shape shape = kept->shape();
    shape[2] = capacity;
    Tensor larger = zeros(shape, kept->dtype());
    write_rows(larger, slice(*kept, 2, 0, length_), 0);
    *kept = larger;
  }
}

KvCache::Kept KvCache::append(const Tensor& keys, const Tensor& values) {
  check_rows("keys", keys, keys_);
  check_rows("values", values, values_);
  const std::int64_t more = keys.size(2);
  if (values.size(2) != more) {
    fail<ShapeError>("[KvCache] there must be one value for each key: keys {}, values {}",
                     to_string(keys.shape()), to_string(values.shape()));
  }
  if (length_ + more > capacity()) {
    fail<ValueError>(
        "[KvCache] {} of {} positions are taken, and there is no room for {} more: make a larger cache, or "
        "start again with the last part of the sequence",
        length_, capacity(), more);
  }
  write_rows(keys_, keys, length_);
  write_rows(values_, values, length_);
  length_ += more;
  return {slice(keys_, 2, 0, length_), slice(values_, 2, 0, length_)};
}

}  // namespace fovea
