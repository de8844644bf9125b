#include "server/kernels/thread_pool.h"

namespace aerie {
namespace {

constexpr uint32_t kOpen = uint32_t{1} << 31;
// Looks of a thread that waits, a few tens of microseconds: what lies between two products of one
// step, and far less than what lies between two steps of a server that has little to do.
constexpr int kLooks = 2000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when `value` is no longer `old`; looks for a moment, then sleeps.
void AwaitChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kLooks; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : in_use_(threads), bells_(std::make_unique<Bell[]>(static_cast<size_t>(threads - 1))) {
  for (int thread = 1; thread < threads; ++thread)
    workers_.emplace_back([this, thread] { Work(thread); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  for (int thread = 1; thread < threads(); ++thread) Ring(thread);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Ring(int thread) {
  std::atomic<uint32_t>& rings = bells_[static_cast<size_t>(thread - 1)].rings;
  rings.fetch_add(1);
  rings.notify_one();  // no system call where it does not sleep
}

void ThreadPool::RunShared(int64_t count, Call call, void* context) {
  call_ = call;
  context_ = context;
  count_ = count;
  sharing_ = in_use_;
  next_.store(0, std::memory_order_relaxed);
  inside_.store(kOpen, std::memory_order_release);
  for (int thread = 1; thread < in_use_; ++thread) Ring(thread);
  TakeTasks(0);
  // Every task has been taken, so whoever comes now comes too late.
  uint32_t left = inside_.fetch_and(~kOpen) & ~kOpen;
  while (left != 0) {
    AwaitChange(inside_, left);
    left = inside_.load(std::memory_order_acquire);
  }
}

void ThreadPool::Work(int thread) {
  const std::atomic<uint32_t>& rings = bells_[static_cast<size_t>(thread - 1)].rings;
  uint32_t seen = 0;
  while (true) {
    AwaitChange(rings, seen);
    seen = rings.load(std::memory_order_acquire);
    if (stop_.load()) return;
    uint32_t inside = inside_.load(std::memory_order_acquire);
    while ((inside & kOpen) != 0 && !inside_.compare_exchange_weak(inside, inside + 1)) {
    }
    if ((inside & kOpen) == 0) continue;
    // A thread that comes late for one piece may meet the next, which may be for fewer.
    if (thread < sharing_) TakeTasks(thread);
    inside_.fetch_sub(1);
    inside_.notify_one();
  }
}

void ThreadPool::TakeTasks(int thread) {
  while (true) {
    const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= count_) return;
    call_(context_, task, thread);
  }
}

}  // namespace aerie
