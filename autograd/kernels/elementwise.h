#pragma once

#include <Eigen/Core>

#include <array>
#include <cstring>

#include "autograd/base/parallel.h"
#include "autograd/kernels/strided.h"

namespace fovea::kernels {

/// The unit of elementwise work: a fixed number of elements, computed in vector registers. The end of a row
/// is padded to a whole block, so that every element goes through the same instructions and its result does
/// not depend on its place.
inline constexpr int block_size = 16;
template <class T>
using Block = Eigen::Array<T, block_size, 1>;

template <class T>
using BlockMap = Eigen::Map<Block<T>, Eigen::Unaligned>;
template <class T>
using ConstBlockMap = Eigen::Map<const Block<T>, Eigen::Unaligned>;

/// Loads `count` elements that are `step` apart. The rest of the block repeats the last of them.
template <class T>
Block<T> load(const T* data, std::int64_t step, std::int64_t count) {
  Block<T> block;
  if (step == 1 && count == block_size) {
    block = ConstBlockMap<T>(data);
  } else if (step == 0) {
    block.setConstant(*data);
  } else {
    for (int i = 0; i < block_size; ++i) block[i] = data[std::min<std::int64_t>(i, count - 1) * step];
  }
  return block;
}

template <class T>
void store(const Block<T>& block, T* data, std::int64_t step, std::int64_t count) {
  if (step == 1 && count == block_size) {
    BlockMap<T>{data} = block;
  } else {
    for (std::int64_t i = 0; i < count; ++i) data[i * step] = block[i];
  }
}

/// out = f(in...) for every element. f takes and returns blocks; array 0 of the loops is `out`, and the
/// others are `in...`.
template <class Out, class F, class... In>
void map(const Loops<1 + sizeof...(In)>& loops, Out* out, const F& f, const In*... in) {
  parallel_for(loops.size(), elements_per_chunk, [&](std::int64_t begin, std::int64_t end) {
    loops.for_each_piece(begin, end, [&](const auto& offsets, std::int64_t length) {
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        const auto& step = loops.step;
        for (std::int64_t i = 0; i < length; i += block_size) {
          const std::int64_t count = std::min<std::int64_t>(block_size, length - i);
          const Block<Out> result = f(load(in + offsets[k + 1] + i * step[k + 1], step[k + 1], count)...);
          store(result, out + offsets[0] + i * step[0], step[0], count);
        }
      }
      (std::index_sequence_for<In...>());
    });
  });
}

}  // namespace fovea::kernels
