#pragma once

#include <cstddef>

namespace fovea::pool {

/// Blocks are aligned to a cache line, so that packets never straddle two.
inline constexpr std::size_t alignment = 64;

/// A block of at least `bytes`, reused from earlier ones where possible: a warm training step asks the system
/// for nothing. Throws: MemoryError.
void* allocate(std::size_t bytes);
void deallocate(void* block, std::size_t bytes) noexcept;

}  // namespace fovea::pool
