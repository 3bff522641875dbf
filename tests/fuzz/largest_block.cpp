#include "tests/fuzz/largest_block.h"

#include <algorithm>
#include <cstdlib>
#include <new>

// In a file of their own: GCC warns where it inlines one of them and not another.

constinit thread_local std::size_t largest_block = 0;

void* operator new(std::size_t bytes) {
  largest_block = std::max(largest_block, bytes);
  if (void* block = std::malloc(std::max<std::size_t>(bytes, 1))) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
