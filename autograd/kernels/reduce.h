#pragma once

#include <array>
#include <limits>
#include <vector>

#include "autograd/kernels/rows.h"

// Reductions: the elements along some axes of a strided array are combined into one.
namespace fovea::kernels {

/// An operation that combines two elements, or two blocks lane by lane, and its identity: the value that
/// combining leaves as it is.
struct Sum {
  static constexpr double identity = 0;
  static double combine(double a, double b) { return a + b; }
  template <class T>
  static Block<T> combine(const Block<T>& a, const Block<T>& b) {
    return a + b;
  }
};
struct Max {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  // The result is NaN if either is.
  template <class T>
  static T combine(T a, T b) {
    return ((a >= b) | std::isnan(a)) ? a : b;
  }
  template <class T>
  static Block<T> combine(const Block<T>& a, const Block<T>& b) {
    Block<T> result;
    for_each_lane([&](int i) { result[i] = combine(a[i], b[i]); });
    return result;
  }
};

namespace detail {

// Combines the blocks k to k + 3 pairwise.
template <class Operation, class Load>
auto combine_four(std::int64_t k, const Load& block) {
  return Operation::combine(Operation::combine(block(k), block(k + 1)),
                            Operation::combine(block(k + 2), block(k + 3)));
}

template <class Operation, std::size_t n>
double combine_lanes(const std::array<double, n>& lanes) {
  if constexpr (n == 1) {
    return lanes[0];
  } else {
    std::array<double, n / 2> halves;
    for (std::size_t i = 0; i < n / 2; ++i) halves[i] = Operation::combine(lanes[i], lanes[i + n / 2]);
    return combine_lanes<Operation>(halves);
  }
}

// Combines n elements that lie `step` apart. Blocks are taken four at a time, because a block that is added
// alone waits for the total of those before it.
template <class Operation, class T>
double combine_run(const T* x, std::int64_t step, std::int64_t n) {
  std::array<double, block_size> lanes;
  lanes.fill(Operation::identity);
  if (step != 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      double& lane = lanes[static_cast<std::size_t>(i % block_size)];
      lane = Operation::combine(lane, static_cast<double>(x[i * step]));
    }
    return combine_lanes<Operation>(lanes);
  }
  const auto block = [&](std::int64_t k) -> Block<T> { return ConstBlockMap<T>{x + k * block_size}; };
  const auto combine_to_lanes = [&](const Block<T>& values) {
    BlockMap<double> total(lanes.data());
    total = Operation::combine(Block<double>(total), cast<double>(values));
  };
  const std::int64_t whole = n / block_size;
  std::int64_t k = 0;
  for (; k + 4 <= whole; k += 4) combine_to_lanes(combine_four<Operation>(k, block));
  for (; k < whole; ++k) combine_to_lanes(block(k));
  const std::int64_t left = n % block_size;
  if (left != 0) combine_to_lanes(load_part(x + n - left, left, static_cast<T>(Operation::identity)));
  return combine_lanes<Operation>(lanes);
}

// For results that lie side by side: combines `rows` rows of their elements, `step` apart, with the totals,
// which have room for whole blocks.
template <class Operation, class T>
void combine_rows(const T* x, std::int64_t results, std::int64_t rows, std::int64_t step, double* totals) {
  const auto combine_to_totals = [&](std::int64_t i, const Block<T>& values) {
    BlockMap<double> total(totals + i);
    total = Operation::combine(Block<double>(total), cast<double>(values));
  };
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for_each_block(results, [&](std::int64_t i, auto count) {
      combine_to_totals(i, combine_four<Operation>(
                               row, [&](std::int64_t k) { return load_part(x + k * step + i, count); }));
    });
  }
  for (; row < rows; ++row) {
    for_each_block(results, [&](std::int64_t i, auto count) {
      combine_to_totals(i, load_part(x + row * step + i, count));
    });
  }
}

}  // namespace detail

/// One reduction: `kept` walks over the results, `reduced` over the elements of one result.
template <class Operation, class T>
class Reduction {
 public:
  Reduction(const T* x, const Loops<1>& kept, const Loops<1>& reduced)
      : x_(x),
        kept_(kept),
        reduced_(reduced),
        side_by_side_(kept.step[0] == 1 && kept.row_length >= block_size / 2 && reduced.step[0] != 1) {}

  /// Writes the results, divided by `divisor`, to y. Work is cut by sizes alone, so that bits do not depend
  /// on the number of threads: either along the results, or along the elements of each result into pieces,
  /// whose totals are combined in order.
  void run(T* y, double divisor) const {
    const std::int64_t results = kept_.size(), n = reduced_.size();
    const std::int64_t piece = elements_at_a_time();
    const auto finish = [&](std::int64_t i, double total) { y[i] = static_cast<T>(total / divisor); };
    if (n <= piece) {
      parallel_for(results,
                   std::max<std::int64_t>(block_size, elements_per_chunk / std::max<std::int64_t>(1, n)),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<double> totals(index(end - begin + slack));
                     combine(begin, end, 0, n, totals.data());
                     for (std::int64_t i = 0; i < end - begin; ++i) finish(begin + i, totals[index(i)]);
                   });
      return;
    }
    const std::int64_t pieces = (n + piece - 1) / piece;
    const std::int64_t width = results + slack;
    std::vector<double> totals(index(pieces * width));
    parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
      combine(0, results, begin, end, totals.data() + begin / piece * width);
    });
    for (std::int64_t i = 0; i < results; ++i) {
      double total = Operation::identity;
      for (std::int64_t p = 0; p < pieces; ++p)
        total = Operation::combine(total, totals[index(p * width + i)]);
      finish(i, total);
    }
  }

 private:
  static constexpr std::int64_t slack = block_size;  // totals are written in whole blocks

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  // How many elements of each result one piece has. Results that lie side by side stay together, since a row
  // of them is read in one go; the elements of other results are cut only where results are few.
  std::int64_t elements_at_a_time() const {
    const std::int64_t results = std::max<std::int64_t>(1, kept_.size());
    if (side_by_side_) return std::max<std::int64_t>(64, elements_per_chunk / results);
    return results >= 64 ? reduced_.size() : std::max<std::int64_t>(4096, elements_per_chunk / results);
  }

  // Writes the totals of the elements [begin, end) of the results [first, last).
  void combine(std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end,
               double* totals) const {
    const std::int64_t step = reduced_.step[0];
    kept_.for_each_piece(first, last, [&](const auto& offsets, std::int64_t length) {
      const T* from = x_ + offsets[0];
      if (side_by_side_) {
        std::fill_n(totals, length + slack, Operation::identity);
        reduced_.for_each_piece(begin, end, [&](const auto& inner, std::int64_t rows) {
          detail::combine_rows<Operation>(from + inner[0], length, rows, step, totals);
        });
      } else {
        for (std::int64_t i = 0; i < length; ++i)
          totals[i] = combine_one(from + i * kept_.step[0], begin, end);
      }
      totals += length;
    });
  }

  double combine_one(const T* from, std::int64_t begin, std::int64_t end) const {
    const std::int64_t step = reduced_.step[0];
    if (reduced_.rows == 1) return detail::combine_run<Operation>(from + begin * step, step, end - begin);
    double total = Operation::identity;
    reduced_.for_each_piece(begin, end, [&](const auto& offsets, std::int64_t length) {
      total = Operation::combine(total, detail::combine_run<Operation>(from + offsets[0], step, length));
    });
    return total;
  }

  const T* x_;
  const Loops<1>& kept_;
  const Loops<1>& reduced_;
  bool side_by_side_;
};

/// The largest of n elements that lie `step` apart; NaN if one of them is.
template <class T>
T largest_of(const T* x, std::int64_t step, std::int64_t n) {
  return static_cast<T>(detail::combine_run<Max>(x, step, n));
}

}  // namespace fovea::kernels
