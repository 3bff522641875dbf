#include "autograd/base/parallel.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <vector>

#include "autograd/base/fail.h"
#include "fovea/autograd/base/parallel.h"

namespace fovea {
namespace {

int machine_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

std::atomic<int> thread_limit{machine_threads()};
thread_local bool inside_chunk = false;

// The chunks of one call of parallel_for. Free threads take them in order; the failure of the earliest is
// kept.
class Job {
 public:
  Job(std::int64_t chunks, kernels::detail::ChunkFunction function, const void* context)
      : chunks_(chunks), function_(function), context_(context) {}

  void work() {
    inside_chunk = true;
    for (std::int64_t c = next_++; c < chunks_; c = next_++) {
      try {
        function_(context_, c);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (c < failed_chunk_) {
          failed_chunk_ = c;
          failure_ = std::current_exception();
        }
      }
    }
    inside_chunk = false;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::int64_t chunks_;
  kernels::detail::ChunkFunction function_;
  const void* context_;
  std::atomic<std::int64_t> next_{0};
  std::mutex mutex_;
  std::int64_t failed_chunk_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure_;
};

// Leaves the core to its other hardware thread while this one waits.
void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A pool of threads. Between jobs a thread first spins, since the next job usually follows soon, and then
// sleeps. A job waits only for workers that have begun, never for one to arrive, so on a busy machine the
// caller may do all the work. One job runs at a time; another caller meanwhile works alone.
class Workers {
 public:
  void run(int workers, Job& job) {
    const std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return job.work();
    {
      std::lock_guard lock(mutex_);
      start_threads(workers - 1);
      job_ = &job;
      wanted_ = workers - 1;
      ++posted_;
    }
    wake_.notify_all();
    job.work();
    close();
  }
  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      ++posted_;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  // If the system refuses to start a thread, the threads that did start and the caller share all the work.
  void start_threads(int wanted) {
    try {
      while (static_cast<int>(threads_.size()) < wanted) threads_.emplace_back([this] { loop(); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  static constexpr int spins = 1 << 12;  // some tens of microseconds

  void close() {
    {
      std::lock_guard lock(mutex_);
      wanted_ = 0;
    }
    for (int i = 0; i < spins && working_ > 0; ++i) relax();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return working_ == 0; });
    job_ = nullptr;
  }

  void loop() {
    std::uint64_t seen = 0;
    while (true) {
      for (int i = 0; i < spins && posted_ == seen; ++i) relax();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return posted_ != seen; });
      seen = posted_;
      if (stop_) return;
      if (wanted_ == 0) continue;
      --wanted_;
      ++working_;
      Job* job = job_;
      lock.unlock();
      job->work();
      lock.lock();
      if (--working_ == 0) done_.notify_all();
    }
  }

  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint64_t> posted_{0};  // jobs so far; changed under the mutex, like all that follows
  std::atomic<int> working_{0};
  int wanted_ = 0;
  Job* job_ = nullptr;
  bool stop_ = false;
};

// The pool of this process; its threads are joined when the process ends. A forked child has none of its
// parent's threads: it leaves the parent's pool as it is, which no one can join or unlock, and gets its own.
class ProcessWorkers {
 public:
  static ProcessWorkers& instance() {
    static ProcessWorkers only;
    return only;
  }
  Workers& workers() { return *workers_; }

 private:
  ProcessWorkers() {
    pthread_atfork(nullptr, nullptr, [] {
      (void)instance().workers_.release();
      instance().workers_ = std::make_unique<Workers>();
    });
  }

  std::unique_ptr<Workers> workers_ = std::make_unique<Workers>();
};

}  // namespace

void set_threads(int n) {
  if (n < 1) fail<ValueError>("[set_threads] {} threads asked for: at least 1 is needed", n);
  thread_limit = n;
}

int threads() { return thread_limit; }

namespace kernels::detail {

void run_chunks(std::int64_t chunks, ChunkFunction function, const void* context) {
  const auto workers = static_cast<int>(std::min<std::int64_t>(chunks, thread_limit));
  if (workers == 1 || inside_chunk) {
    for (std::int64_t c = 0; c < chunks; ++c) function(context, c);
    return;
  }
  Job job(chunks, function, context);
  ProcessWorkers::instance().workers().run(workers, job);
  job.rethrow();
}

}  // namespace kernels::detail
}  // namespace fovea
