// A few threads that share one piece of work at a time with whoever hands it out.
//
// Made for work of tens of microseconds: between two pieces of one draft step a thread looks for
// the next one for a moment before it sleeps, and once it sleeps it costs nothing. The caller works
// too, takes what nobody else has begun, and waits only for what somebody has: a thread that the
// system does not let run delays nobody. Threads that the work in hand is not worth are left
// asleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace aerie {

// One caller at a time.
class ThreadPool {
 public:
  // `threads`: the caller included, so 1 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // How many of them, the caller included, Run() shares work with from now on; at first all. In
  // 1..threads(). The caller's, like Run().
  void Use(int threads) { in_use_ = threads; }
  int in_use() const { return in_use_; }

  // Calls body(task, thread) once for every task in 0..count-1, on any thread, and returns when all
  // have ended; `thread` is in 0..in_use()-1 and tells memory of one's own. `body` must not throw.
  template <typename Body>
  void Run(int64_t count, Body&& body) {
    if (in_use_ == 1 || count <= 1) {
      for (int64_t task = 0; task < count; ++task) body(task, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    RunShared(
        count,
        [](void* context, int64_t task, int thread) {
          (*static_cast<Plain*>(context))(task, thread);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t task, int thread);

  void Ring(int thread);
  void RunShared(int64_t count, Call call, void* context);
  void Work(int thread);
  void TakeTasks(int thread);

  // A thread waits for its own to change, as it does with every piece of work for that thread, and
  // at the end.
  struct alignas(64) Bell {
    std::atomic<uint32_t> rings{0};
  };

  int in_use_;  // the caller's
  // The work in hand; written only while nobody is inside.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  int sharing_ = 0;  // threads that it is for
  alignas(64) std::atomic<int64_t> next_{0};
  // Threads inside the work, and kOpen while more may enter.
  alignas(64) std::atomic<uint32_t> inside_{0};
  std::unique_ptr<Bell[]> bells_;  // of each thread but the caller
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace aerie
