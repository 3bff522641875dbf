#include "fovea/autograd/base/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <pthread.h>

#include "autograd/base/fail.h"
#include "autograd/base/pool.h"
#include "autograd/base/text.h"

// Under the address sanitizer blocks are not reused, so that it sees every use of a freed one.
#if defined(__SANITIZE_ADDRESS__)
#define FOVEA_REUSE_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOVEA_REUSE_BLOCKS 0
#endif
#endif
#ifndef FOVEA_REUSE_BLOCKS
#define FOVEA_REUSE_BLOCKS 1
#endif

namespace fovea {
namespace pool {
namespace {

// Small blocks (nodes, handles, scalars) come in multiples of 64 bytes and pass through a cache of the
// thread's own; large ones come in four sizes per doubling and are shared by all threads.
constexpr std::size_t small_limit = 1024;
constexpr std::size_t small_classes = small_limit / alignment;

struct FreeBlock {
  FreeBlock* next;
};

std::size_t large_size(std::size_t index) { return (std::size_t{1} << index / 4) / 4 * (4 + index % 4); }

void* system_allocate(std::size_t bytes) {
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!block) {
    fail<MemoryError>("[memory] the system has no {} bytes left",
                      detail::with_commas(static_cast<std::int64_t>(bytes)));
  }
  return block;
}

// What all threads share. Never destroyed: tensors in static storage may outlive any static object.
struct Shared {
  std::mutex mutex;
  std::array<FreeBlock*, small_classes> small{};
  std::array<FreeBlock*, 4 * 64 + 4> large{};
  std::atomic<std::int64_t> live{0};
  std::atomic<std::int64_t> peak{0};
  std::atomic<std::int64_t> held{0};  // asked of the system and not yet returned
};

Shared& shared();

// A child that is forked while another thread holds the lock would wait for it for ever, so fork takes it.
Shared& make_shared() {
  auto* made = new Shared;
  pthread_atfork([] { shared().mutex.lock(); }, [] { shared().mutex.unlock(); },
                 [] { shared().mutex.unlock(); });
  return *made;
}

Shared& shared() {
  static Shared& instance = make_shared();
  return instance;
}

void count_live(std::int64_t bytes) {
  Shared& s = shared();
  const std::int64_t live = s.live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = s.peak.load(std::memory_order_relaxed);
  while (live > peak && !s.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

#if FOVEA_REUSE_BLOCKS

constexpr std::size_t slab_bytes = std::size_t{256} << 10;
constexpr int thread_cache_limit = 512;

std::size_t small_class(std::size_t bytes) { return bytes <= alignment ? 0 : (bytes - 1) / alignment; }
std::size_t small_size(std::size_t index) { return (index + 1) * alignment; }

struct LargeClass {
  std::size_t index;
  std::size_t bytes;
};

LargeClass large_class(std::size_t bytes) {
  const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = std::size_t{1} << (doubling - 2);
  const std::size_t steps = (bytes - (std::size_t{1} << doubling) + quarter - 1) / quarter;
  return {4 * doubling + steps, large_size(4 * doubling + steps)};
}

struct ThreadCache {
  std::array<FreeBlock*, small_classes> head{};
  std::array<int, small_classes> count{};

  void give_back(std::size_t index, int keep) {
    std::lock_guard lock(shared().mutex);
    while (count[index] > keep) {
      FreeBlock* block = head[index];
      head[index] = block->next;
      block->next = shared().small[index];
      shared().small[index] = block;
      --count[index];
    }
  }
  void fill(std::size_t index) {
    std::lock_guard lock(shared().mutex);
    Shared& s = shared();
    const std::size_t size = small_size(index);
    if (!s.small[index]) {
      auto* slab = static_cast<std::byte*>(system_allocate(slab_bytes));
      for (std::size_t at = slab_bytes / size * size; at >= size; at -= size) {
        auto* block = ::new (slab + at - size) FreeBlock{s.small[index]};
        s.small[index] = block;
      }
      s.held.fetch_add(static_cast<std::int64_t>(slab_bytes), std::memory_order_relaxed);
    }
    for (; s.small[index] && count[index] < thread_cache_limit / 2; ++count[index]) {
      FreeBlock* block = s.small[index];
      s.small[index] = block->next;
      block->next = head[index];
      head[index] = block;
    }
  }
};

// A thread's cache is handed back when the thread ends; blocks freed after that go to the shared lists.
thread_local ThreadCache* cache = nullptr;
thread_local bool thread_ended = false;
struct ThreadEnd {
  ThreadCache owned;
  ThreadEnd() { cache = &owned; }
  ~ThreadEnd() {
    for (std::size_t index = 0; index < small_classes; ++index) owned.give_back(index, 0);
    cache = nullptr;
    thread_ended = true;
  }
};

ThreadCache* thread_cache() {
  if (!cache && !thread_ended) {
    thread_local ThreadEnd end;
  }
  return cache;
}

void* take_small(std::size_t index) {
  ThreadCache temporary;
  ThreadCache* mine = thread_cache();
  ThreadCache& from = mine ? *mine : temporary;
  if (!from.head[index]) from.fill(index);
  FreeBlock* block = from.head[index];
  from.head[index] = block->next;
  --from.count[index];
  if (!mine) from.give_back(index, 0);
  return block;
}

void give_small(void* memory, std::size_t index) {
  ThreadCache temporary;
  ThreadCache* mine = thread_cache();
  ThreadCache& to = mine ? *mine : temporary;
  auto* block = ::new (memory) FreeBlock{to.head[index]};
  to.head[index] = block;
  if (++to.count[index] > thread_cache_limit || !mine) to.give_back(index, mine ? thread_cache_limit / 2 : 0);
}

// What is kept for reuse is given back before the system's refusal counts.
void* system_allocate_large(std::size_t bytes) {
  try {
    return system_allocate(bytes);
  } catch (const MemoryError&) {
    release_cached_memory();
    return system_allocate(bytes);
  }
}

void* take_large(std::size_t bytes) {
  const LargeClass size = large_class(bytes);
  Shared& s = shared();
  {
    std::lock_guard lock(s.mutex);
    if (FreeBlock* block = s.large[size.index]) {
      s.large[size.index] = block->next;
      return block;
    }
  }
  void* block = system_allocate_large(size.bytes);
  s.held.fetch_add(static_cast<std::int64_t>(size.bytes), std::memory_order_relaxed);
  return block;
}

void give_large(void* memory, std::size_t index) {
  Shared& s = shared();
  std::lock_guard lock(s.mutex);
  s.large[index] = ::new (memory) FreeBlock{s.large[index]};
}

#endif

}  // namespace

#if FOVEA_REUSE_BLOCKS

void* allocate(std::size_t bytes) {
  void* block = bytes <= small_limit ? take_small(small_class(bytes)) : take_large(bytes);
  count_live(static_cast<std::int64_t>(bytes));
  return block;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  count_live(-static_cast<std::int64_t>(bytes));
  if (bytes <= small_limit) {
    give_small(block, small_class(bytes));
  } else {
    give_large(block, large_class(bytes).index);
  }
}

#else

void* allocate(std::size_t bytes) {
  void* block = system_allocate(bytes);
  count_live(static_cast<std::int64_t>(bytes));
  return block;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  count_live(-static_cast<std::int64_t>(bytes));
  std::free(block);
}

#endif

}  // namespace pool

MemoryUse memory() {
  const pool::Shared& s = pool::shared();
  const std::int64_t live = s.live.load();
  return {live, s.peak.load(), std::max<std::int64_t>(0, s.held.load() - live)};
}

void reset_peak_memory() { pool::shared().peak = pool::shared().live.load(); }

void release_cached_memory() {
  pool::Shared& s = pool::shared();
  std::lock_guard lock(s.mutex);
  for (std::size_t index = 0; index < s.large.size(); ++index) {
    while (pool::FreeBlock* block = s.large[index]) {
      s.large[index] = block->next;
      std::free(block);
      s.held.fetch_sub(static_cast<std::int64_t>(pool::large_size(index)));
    }
  }
}

}  // namespace fovea
