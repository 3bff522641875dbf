#include "fovea/autograd/mask.h"

#include <algorithm>
#include <cstdlib>

#include "autograd/fail.h"

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
  mask.causal_ = true;
  return mask;
}

Mask Mask::window(std::int64_t n) {
  if (n < 1) fail<ValueError>("[mask] a window of {} keys shows nothing: at least 1 is needed", n);
  Mask mask;
  mask.window_ = n;
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
  mask.lengths_ = lengths;
  return mask;
}

Mask Mask::keep(const Bool& seen) {
  if (seen.rank() > 4) {
    fail<ShapeError>("[mask] shape {} has more axes than (B, H, Tq, Tk)", to_string(seen.shape()));
  }
  Mask mask;
  mask.seen_ = seen;
  return mask;
}

Mask Mask::drop(const Bool& hidden) { return keep(!hidden); }

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.causal_ = a.causal_ || b.causal_;
  if (b.window_) both.window_ = std::min(*b.window_, a.window_.value_or(*b.window_));
  if (b.lengths_) {
    if (a.lengths_ && a.lengths_->shape() != b.lengths_->shape()) {
      fail<ShapeError>("[mask] lengths of {} and {} sequences can't be joined", a.lengths_->numel(),
                       b.lengths_->numel());
    }
    both.lengths_ = Indices(b.lengths_->shape(), [&](std::int64_t* out) {
      for (std::int64_t i = 0; i < b.lengths_->numel(); ++i) {
        out[i] = a.lengths_ ? std::min((*a.lengths_)[i], (*b.lengths_)[i]) : (*b.lengths_)[i];
      }
    });
  }
  if (b.seen_) both.seen_ = a.seen_ ? *a.seen_ & *b.seen_ : *b.seen_;
  return both;
}

Bool Mask::materialize(std::int64_t batch, std::int64_t heads, std::int64_t queries,
                       std::int64_t keys) const {
  const std::int64_t shift = keys - queries;
  Bool kept = table(1, 1, 1, [](std::int64_t, std::int64_t) { return true; });
  if (causal_ || window_) {
    kept = table(1, queries, keys, [&](std::int64_t query, std::int64_t key) {
      const std::int64_t ahead = key - query - shift;
      return (!causal_ || ahead <= 0) && (!window_ || std::abs(ahead) < *window_);
    });
  }
  if (lengths_) {
    if (lengths_->numel() != batch) {
      fail<ShapeError>("[mask] lengths for {} sequences, the batch has {}", lengths_->numel(), batch);
    }
    kept =
        kept & table(batch, 1, keys, [&](std::int64_t b, std::int64_t key) { return key < (*lengths_)[b]; });
  }
  if (seen_) {
    const Shape full{batch, heads, queries, keys};
    if (broadcast_shapes("mask", seen_->shape(), full) != full) {
      fail<ShapeError>("[mask] shape {} does not broadcast to (B, H, Tq, Tk) = {}", to_string(seen_->shape()),
                       to_string(full));
    }
    kept = kept & *seen_;
  }
  return kept;
}

}  // namespace fovea
