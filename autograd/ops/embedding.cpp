#include <algorithm>
#include <vector>

#include "autograd/ops/ids.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {
namespace {

using kernels::Block;
using kernels::cast;

// The positions of all ids, grouped by id: those of id v are at starts[v] to starts[v + 1], in ascending
// order.
struct PositionsById {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> positions;

  PositionsById(const Indices& ids, std::int64_t vocabulary)
      : starts(static_cast<std::size_t>(vocabulary) + 1, 0),
        positions(static_cast<std::size_t>(ids.numel())) {
    // The count of id v is kept at v + 1, and becomes the start of v. Placing the positions of v then moves
    // it on to their end, which is the start of v + 1.
    const auto start_of = [&](std::int64_t i) { return static_cast<std::size_t>(ids[i]) + 1; };
    const std::int64_t n = ids.numel();
    for (std::int64_t i = 0; i < n; ++i) ++starts[start_of(i)];
    std::int64_t before = 0;
    for (std::int64_t& start : starts) start = std::exchange(before, before + start);
    for (std::int64_t i = 0; i < n; ++i) {
      positions[static_cast<std::size_t>(starts[start_of(i)]++)] = i;
    }
  }
};

// Adds up the rows (C) at those positions.
template <class T>
void sum_rows(const T* rows, std::int64_t channels, std::span<const std::int64_t> positions, T* sum) {
  kernels::for_each_block(channels, [&](std::int64_t c, auto count) {
    Block<double> total = Block<double>::Zero();
    for (const std::int64_t position : positions) {
      total += cast<double>(kernels::load_part(rows + position * channels + c, count));
    }
    kernels::store_part(cast<T>(total), sum + c, count);
  });
}

// The transpose of a lookup: row v of the result is the sum of the rows whose id is v, and 0 for the padding.
// One thread adds up each row in the order of positions, so bits do not depend on the number of threads.
Tensor scatter(const Tensor& rows, const Indices& ids, std::int64_t vocabulary,
               const EmbeddingOptions& options) {
  const std::int64_t channels = rows.shape().back();
  const Tensor table = empty({vocabulary, channels}, rows.dtype());
  const PositionsById groups(ids, vocabulary);
  dispatch(rows.dtype(), [&, flat = detail::row_major(rows)]<class T>() {
    const T* from = flat.template data<T>();
    T* to = detail::fresh_data<T>(table);
    kernels::for_each_row(vocabulary, channels, [&](std::int64_t v) {
      const std::int64_t* start = groups.starts.data() + v;
      if (v == options.padding) return (void)std::fill_n(to + v * channels, channels, T(0));
      sum_rows(from, channels, {groups.positions.data() + start[0], groups.positions.data() + start[1]},
               to + v * channels);
    });
  });
  return record("embedding_gradient", table, {rows}, {},
                [ids, options](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {embedding(dy, ids, options)};
                });
}

template <class T>
void look_up(const T* table, const Strides& strides, std::int64_t id, std::int64_t channels, T* row) {
  const T* from = table + id * strides[0];
  if (strides[1] == 1) {
    std::copy_n(from, channels, row);
  } else {
    for (std::int64_t c = 0; c < channels; ++c) row[c] = from[c * strides[1]];
  }
}

}  // namespace

Tensor embedding(const Tensor& table, const Indices& ids, const EmbeddingOptions& options) {
  if (table.rank() != 2) {
    fail<ShapeError>("[embedding] the table must be a matrix (V, C): its shape is {}",
                     to_string(table.shape()));
  }
  const std::int64_t vocabulary = table.shape()[0];
  const std::int64_t channels = table.shape()[1];
  detail::count_ids("embedding", "id", ids, vocabulary);
  if (options.padding && (*options.padding < 0 || *options.padding >= vocabulary)) {
    fail<IndexError>("[embedding] the padding id {} is outside the vocabulary of {}", *options.padding,
                     vocabulary);
  }
  Shape shape = ids.shape();
  shape.push_back(channels);
  const Tensor y = empty(shape, table.dtype());
  dispatch(y.dtype(), [&]<class T>() {
    const T* from = table.data<T>();
    T* to = detail::fresh_data<T>(y);
    kernels::for_each_row(ids.numel(), channels, [&](std::int64_t i) {
      if (ids[i] == options.padding) return (void)std::fill_n(to + i * channels, channels, T(0));
      look_up(from, table.strides(), ids[i], channels, to + i * channels);
    });
  });
  return record(
      "embedding", y, {table}, {},
      [ids, vocabulary, options](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
        return {scatter(dy, ids, vocabulary, options)};
      });
}

}  // namespace fovea
