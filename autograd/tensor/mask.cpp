#include "fovea/autograd/tensor/mask.h"

#include <algorithm>
#include <cstdlib>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

// A (1, 1, Tq, Tk) or (B, 1, 1, Tk) table of test(row, key).
template <class Test>
Bool table(std::int64_t batch, std::int64_t queries, std::int64_t keys, Test test) {
  return Bool({batch, 1, queries, keys}, [&](std::uint8_t* out) {
    for (std::int64_t row = 0; row < batch * queries; ++row) {
      for (std::int64_t key = 0; key < keys; ++key) *out++ = test(row, key);
    }
  });
}

}  // namespace

Mask Mask::causal() {
  Mask mask;
  mask.parts_.causal = true;
  return mask;
}

Mask Mask::window(std::int64_t n) {
  if (n < 1) fail<ValueError>("[mask] a window of {} keys shows nothing: at least 1 is needed", n);
  Mask mask;
  mask.parts_.window = n;
  return mask;
}

Mask Mask::lengths(const Indices& lengths) {
  if (lengths.rank() != 1) {
    fail<ShapeError>("[mask] lengths must be one per sequence, shape (B,), and have shape {}",
                     to_string(lengths.shape()));
  }
  for (std::int64_t b = 0; b < lengths.numel(); ++b) {
    if (lengths[b] < 0)
      fail<ValueError>("[mask] the length of sequence {} is {}: it can't be negative", b, lengths[b]);
  }
  Mask mask;
  mask.parts_.lengths = lengths;
  return mask;
}

Mask Mask::keep(const Bool& seen) {
  if (seen.rank() > 4) {
    fail<ShapeError>("[mask] shape {} has more axes than (B, H, Tq, Tk)", to_string(seen.shape()));
  }
  Mask mask;
  mask.parts_.seen = seen;
  return mask;
}

Mask Mask::drop(const Bool& hidden) { return keep(!hidden); }

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.parts_.causal = a.parts_.causal || b.parts_.causal;
  if (b.parts_.window)
    both.parts_.window = std::min(*b.parts_.window, a.parts_.window.value_or(*b.parts_.window));
  if (b.parts_.lengths) {
    if (a.parts_.lengths && a.parts_.lengths->shape() != b.parts_.lengths->shape()) {
      fail<ShapeError>("[mask] lengths of {} and {} sequences can't be joined", a.parts_.lengths->numel(),
                       b.parts_.lengths->numel());
    }
    both.parts_.lengths = Indices(b.parts_.lengths->shape(), [&](std::int64_t* out) {
      for (std::int64_t i = 0; i < b.parts_.lengths->numel(); ++i) {
        out[i] = a.parts_.lengths ? std::min((*a.parts_.lengths)[i], (*b.parts_.lengths)[i])
                                  : (*b.parts_.lengths)[i];
      }
    });
  }
  if (b.parts_.seen) both.parts_.seen = a.parts_.seen ? *a.parts_.seen & *b.parts_.seen : *b.parts_.seen;
  return both;
}

void Mask::check(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) const {
  if (parts_.lengths && parts_.lengths->numel() != batch) {
    fail<ShapeError>("[mask] lengths for {} sequences, the batch has {}", parts_.lengths->numel(), batch);
  }
  if (!parts_.seen) return;
  const Shape full{batch, heads, queries, keys};
  if (broadcast_shapes("mask", parts_.seen->shape(), full) != full) {
    fail<ShapeError>("[mask] shape {} does not broadcast to (B, H, Tq, Tk) = {}",
                     to_string(parts_.seen->shape()), to_string(full));
  }
}

Bool Mask::materialize(std::int64_t batch, std::int64_t heads, std::int64_t queries,
                       std::int64_t keys) const {
  check(batch, heads, queries, keys);
  const std::int64_t shift = keys - queries;
  Bool kept = table(1, 1, 1, [](std::int64_t, std::int64_t) { return true; });
  if (parts_.causal || parts_.window) {
    kept = table(1, queries, keys, [&](std::int64_t query, std::int64_t key) {
      const std::int64_t ahead = key - query - shift;
      return (!parts_.causal || ahead <= 0) && (!parts_.window || std::abs(ahead) < *parts_.window);
    });
  }
  if (parts_.lengths) {
    kept = kept & table(batch, 1, keys,
                        [&](std::int64_t b, std::int64_t key) { return key < (*parts_.lengths)[b]; });
  }
  if (parts_.seen) kept = kept & *parts_.seen;
  return kept;
}

}  // namespace fovea
