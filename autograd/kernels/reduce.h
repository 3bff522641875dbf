#pragma once

#include <array>
#include <limits>
#include <vector>

#include "autograd/kernels/rows.h"

// Elements along some axes of a strided array, joined to one.
namespace fovea::kernels {

/// How elements or blocks of them are joined, and what there is before the first one.
struct Adding {
  static constexpr double nothing = 0;
  static double join(double a, double b) { return a + b; }
  template <class T>
  static Block<T> join(const Block<T>& a, const Block<T>& b) {
    return a + b;
  }
};
struct Largest {
  static constexpr double nothing = -std::numeric_limits<double>::infinity();
  // A NaN wins over everything.
  template <class T>
  static T join(T a, T b) {
    return ((a >= b) | std::isnan(a)) ? a : b;
  }
  template <class T>
  static Block<T> join(const Block<T>& a, const Block<T>& b) {
    Block<T> result;
    for_each_lane([&](int i) { result[i] = join(a[i], b[i]); });
    return result;
  }
};

namespace detail {

// Four blocks joined, pairwise.
template <class How, class Load>
auto join_four(std::int64_t k, const Load& block) {
  return How::join(How::join(block(k), block(k + 1)), How::join(block(k + 2), block(k + 3)));
}

template <class How, std::size_t n>
double join_lanes(const std::array<double, n>& lanes) {
  if constexpr (n == 1) {
    return lanes[0];
  } else {
    std::array<double, n / 2> halves;
    for (std::size_t i = 0; i < n / 2; ++i) halves[i] = How::join(lanes[i], lanes[i + n / 2]);
    return join_lanes<How>(halves);
  }
}

// n elements, `step` apart. Blocks are taken four at a time: one by one, each would wait for the total.
template <class How, class T>
double join_run(const T* x, std::int64_t step, std::int64_t n) {
  std::array<double, block_size> lanes;
  lanes.fill(How::nothing);
  if (step != 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      double& lane = lanes[static_cast<std::size_t>(i % block_size)];
      lane = How::join(lane, static_cast<double>(x[i * step]));
    }
    return join_lanes<How>(lanes);
  }
  const auto block = [&](std::int64_t k) -> Block<T> { return ConstBlockMap<T>{x + k * block_size}; };
  const auto join_to_lanes = [&](const Block<T>& values) {
    BlockMap<double> total(lanes.data());
    total = How::join(Block<double>(total), cast<double>(values));
  };
  const std::int64_t whole = n / block_size;
  std::int64_t k = 0;
  for (; k + 4 <= whole; k += 4) join_to_lanes(join_four<How>(k, block));
  for (; k < whole; ++k) join_to_lanes(block(k));
  const std::int64_t left = n % block_size;
  if (left != 0) join_to_lanes(load_part(x + n - left, left, static_cast<T>(How::nothing)));
  return join_lanes<How>(lanes);
}

// Results that lie side by side: joins `rows` rows of their elements, `step` apart, to whole blocks of
// totals.
template <class How, class T>
void join_rows(const T* x, std::int64_t results, std::int64_t rows, std::int64_t step, double* totals) {
  const auto join_to_totals = [&](std::int64_t i, const Block<T>& values) {
    BlockMap<double> total(totals + i);
    total = How::join(Block<double>(total), cast<double>(values));
  };
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for_each_block(results, [&](std::int64_t i, auto count) {
      join_to_totals(i,
                     join_four<How>(row, [&](std::int64_t k) { return load_part(x + k * step + i, count); }));
    });
  }
  for (; row < rows; ++row) {
    for_each_block(results, [&](std::int64_t i, auto count) {
      join_to_totals(i, load_part(x + row * step + i, count));
    });
  }
}

}  // namespace detail

/// The arrays of a reduction: `kept` walks over the results, `joined` over the elements of one.
template <class How, class T>
class Reduction {
 public:
  Reduction(const T* x, const Loops<1>& kept, const Loops<1>& joined)
      : x_(x),
        kept_(kept),
        joined_(joined),
        side_by_side_(kept.step[0] == 1 && kept.row_length >= block_size / 2 && joined.step[0] != 1) {}

  /// y = the results, divided by `divisor`. Work is cut by sizes alone: along the elements of a result into
  /// pieces, which are joined in order, or along the results.
  void run(T* y, double divisor) const {
    const std::int64_t results = kept_.size(), n = joined_.size();
    const std::int64_t piece = elements_at_a_time();
    const auto finish = [&](std::int64_t i, double total) { y[i] = static_cast<T>(total / divisor); };
    if (n <= piece) {
      parallel_for(results,
                   std::max<std::int64_t>(block_size, elements_per_chunk / std::max<std::int64_t>(1, n)),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<double> totals(index(end - begin + slack));
                     join(begin, end, 0, n, totals.data());
                     for (std::int64_t i = 0; i < end - begin; ++i) finish(begin + i, totals[index(i)]);
                   });
      return;
    }
    const std::int64_t pieces = (n + piece - 1) / piece;
    const std::int64_t width = results + slack;
    std::vector<double> totals(index(pieces * width));
    parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
      join(0, results, begin, end, totals.data() + begin / piece * width);
    });
    for (std::int64_t i = 0; i < results; ++i) {
      double total = How::nothing;
      for (std::int64_t p = 0; p < pieces; ++p) total = How::join(total, totals[index(p * width + i)]);
      finish(i, total);
    }
  }

 private:
  static constexpr std::int64_t slack = block_size;  // room behind totals, which are written in whole blocks

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  // How many elements of each result are joined at once. Results side by side are left together, since a row
  // of them is read in one go; other results are cut only where they are few.
  std::int64_t elements_at_a_time() const {
    const std::int64_t results = std::max<std::int64_t>(1, kept_.size());
    if (side_by_side_) return std::max<std::int64_t>(64, elements_per_chunk / results);
    return results >= 64 ? joined_.size() : std::max<std::int64_t>(4096, elements_per_chunk / results);
  }

  // Totals of the elements [begin, end) of the results [first, last).
  void join(std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end,
            double* totals) const {
    const std::int64_t step = joined_.step[0];
    kept_.for_each_piece(first, last, [&](const auto& offsets, std::int64_t length) {
      const T* from = x_ + offsets[0];
      if (side_by_side_) {
        std::fill_n(totals, length + slack, How::nothing);
        joined_.for_each_piece(begin, end, [&](const auto& inner, std::int64_t rows) {
          detail::join_rows<How>(from + inner[0], length, rows, step, totals);
        });
      } else {
        for (std::int64_t i = 0; i < length; ++i) totals[i] = join_one(from + i * kept_.step[0], begin, end);
      }
      totals += length;
    });
  }

  double join_one(const T* from, std::int64_t begin, std::int64_t end) const {
    const std::int64_t step = joined_.step[0];
    if (joined_.rows == 1) return detail::join_run<How>(from + begin * step, step, end - begin);
    double total = How::nothing;
    joined_.for_each_piece(begin, end, [&](const auto& offsets, std::int64_t length) {
      total = How::join(total, detail::join_run<How>(from + offsets[0], step, length));
    });
    return total;
  }

  const T* x_;
  const Loops<1>& kept_;
  const Loops<1>& joined_;
  bool side_by_side_;
};

/// The largest of n elements, `step` apart; NaN if one is.
template <class T>
T largest_of(const T* x, std::int64_t step, std::int64_t n) {
  return static_cast<T>(detail::join_run<Largest>(x, step, n));
}

}  // namespace fovea::kernels
