#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/nd_array.h"

namespace fovea {

/// Which query may see which key. A mask says what is kept; made by name and joined with `&`.
///
/// Masks broadcast to (B, H, Tq, Tk) from the right and stay boolean until the softmax: no large negative
/// number stands for "hidden". A query that sees nothing gets zeros, in value and in every gradient.
class FOVEA_API Mask {
 public:
  /// Everything is seen.
  Mask() = default;

  /// Query i sees key j if j - i <= Tk - Tq: aligned at the lower right, so the last query sees every key.
  static Mask causal();
  /// Query i sees key j if |j - (i + Tk - Tq)| < n: n keys on each side, its own included.
  /// Throws: ValueError if n < 1.
  static Mask window(std::int64_t n);
  /// Sequence b of the batch sees its first lengths[b] keys; the others are padding.
  /// Shapes: lengths (B,). Throws: ShapeError, ValueError for a negative length.
  static Mask lengths(const Indices& lengths);
  /// What is true is seen, or hidden. Shapes: broadcastable to (B, H, Tq, Tk).
  static Mask keep(const Bool& seen);
  static Mask drop(const Bool& hidden);

  /// Seen by both.
  FOVEA_API friend Mask operator&(const Mask& a, const Mask& b);

  bool keeps_everything() const {
    return !parts_.causal && !parts_.window && !parts_.lengths && !parts_.seen;
  }

  /// Throws: ShapeError if the mask does not fit these sizes.
  void check(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) const;

  /// The mask for given sizes, with axes of size 1 where it repeats. Throws: ShapeError if it does not fit.
  /// Shapes: -> broadcastable to (B, H, Tq, Tk), of rank 4.
  Bool materialize(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) const;

  /// What the mask is joined from, for kernels that read it in place.
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
