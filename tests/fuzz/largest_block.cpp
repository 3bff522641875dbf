#include "tests/fuzz/largest_block.h"

#include <algorithm>
#include <cstdlib>
#include <new>

// These functions have a file of their own because GCC warns if it inlines one of them and not another.

constinit thread_local std::size_t largest_block = 0;

// Both forms are replaced: a sanitizer replaces the one that is missing, and std::free may not release its
// blocks.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  largest_block = std::max(largest_block, bytes);
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
void* operator new(std::size_t bytes) {
  if (void* block = operator new(bytes, std::nothrow)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
