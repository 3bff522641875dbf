#include "autograd/ops/dropout.h"

#include "autograd/graph/thread_modes.h"
#include "autograd/kernels/dropout.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {
namespace {

using kernels::Block;
using kernels::DropoutMask;

// y = x times the mask's factors. A dropped element becomes 0, even if it is NaN.
template <class T>
void drop_in_row(const DropoutMask& mask, std::int64_t row, const T* x, T* y, std::int64_t n) {
  DropoutMask::Factors<T> factors;
  kernels::for_each_block(n, [&](std::int64_t i, auto count) {
    const std::int64_t within = i % DropoutMask::group_size;
    if (within == 0) factors = mask.factors<T>(row, i / DropoutMask::group_size);
    const Block<T>& factor = factors[static_cast<std::size_t>(within / kernels::block_size)];
    const Block<T> in = kernels::load_part(x + i, count);
    Block<T> out;
    kernels::for_each_lane([&](int lane) { out[lane] = factor[lane] == 0 ? T(0) : in[lane] * factor[lane]; });
    kernels::store_part(out, y + i, count);
  });
}

}  // namespace

void detail::check_dropout(const char* op, double p) {
  if (p >= 0 && p <= 1) return;
  fail<ValueError>(
      "[{}] dropout of {}: it must be a probability, from 0 (keeps everything) to 1 (drops everything)", op,
      p);
}

Tensor detail::dropout_rows(const Tensor& x, double p, std::uint64_t key) {
  const Tensor y = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  const DropoutMask mask(key, p, rows.length);
  dispatch(x.dtype(), [&, flat = row_major(x)]<class T>() {
    const T* from = flat.template data<T>();
    T* to = fresh_data<T>(y);
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      drop_in_row(mask, row, from + row * n, to + row * n, n);
    });
  });
  return record("dropout", y, {x}, {},
                [p, key](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {dropout_rows(dy, p, key)};
                });
}

Tensor dropout(const Tensor& x, double p) {
  detail::check_dropout("dropout", p);
  if (!training() || p == 0) return x;
  // x is taken as a single row, since each row uses whole groups of random words, and short ones would waste
  // most of them.
  const Tensor row = detail::dropout_rows(reshape(x, {1, -1}), p, detail::draw_key());
  return reshape(row, x.shape());
}

}  // namespace fovea
