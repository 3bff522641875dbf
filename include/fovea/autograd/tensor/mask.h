#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/nd_array.h"

namespace fovea {

/// Says which query may see which key: a mask names what is kept. Masks are made by the functions below and
/// combined with `&`.
///
/// Masks broadcast to (B, H, Tq, Tk) from the right and stay boolean until the softmax: no large negative
/// number stands for "hidden". A query that sees nothing gets zeros, in value and in every gradient.
class FOVEA_API Mask {
 public:
  /// A mask that keeps everything.
  Mask() = default;

  /// Query i sees key j if j - i <= Tk - Tq: the triangle is aligned at the lower right, so that the last
  /// query sees every key.
  static Mask causal();
  /// Query i sees key j if |j - (i + Tk - Tq)| < n: n keys on each side, its own included.
  /// Throws: ValueError if n < 1.
  static Mask window(std::int64_t n);
  /// Sequence b of the batch sees its first lengths[b] keys; the others are padding.
  /// Shapes: lengths (B,). Throws: ShapeError, ValueError for a negative length.
  static Mask lengths(const Indices& lengths);
  /// `keep` shows the keys where the array is true, and `drop` hides them.
  /// Shapes: broadcastable to (B, H, Tq, Tk). Throws: ShapeError for more than 4 axes.
  static Mask keep(const Bool& seen);
  static Mask drop(const Bool& hidden);

  /// A mask that keeps what both keep. Throws: ShapeError for lengths of different batches.
  FOVEA_API friend Mask operator&(const Mask& a, const Mask& b);

  bool keeps_everything() const {
    return !parts_.causal && !parts_.window && !parts_.lengths && !parts_.seen;
  }

  /// Throws: ShapeError if the mask does not fit these sizes.
  void check(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) const;

  /// The mask for given sizes, with axes of size 1 where it repeats.
  /// Shapes: -> broadcastable to (B, H, Tq, Tk), of rank 4. Throws: ShapeError if it does not fit.
  Bool materialize(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) const;

  /// The conditions that the mask combines, for kernels that evaluate them in place.
  struct Parts {
    bool causal = false;
    std::optional<std::int64_t> window;
    std::optional<Indices> lengths;
    std::optional<Bool> seen;
  };
  const Parts& parts() const { return parts_; }

 private:
  Parts parts_;
};

}  // namespace fovea
