// A few threads that share one piece of work at a time with whoever hands it out.
//
// Made for work of tens of microseconds: between two pieces of one draft step a thread looks for
// the next one for a moment before it sleeps, and once it sleeps it costs nothing. The caller works
// too, takes what nobody else has begun, and waits only for what somebody has: a thread that the
// system does not let run delays nobody.
#pragma once

#include <atomic>
#include <cstdint>
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

  // Calls body(task, thread) once for every task in 0..count-1, on any thread, and returns when all
  // have ended; `thread` is in 0..threads()-1 and tells memory of one's own. `body` must not throw.
  template <typename Body>
  void Run(int64_t count, Body&& body) {
    if (workers_.empty() || count <= 1) {
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

  void RunShared(int64_t count, Call call, void* context);
  void Work(int thread);
  void TakeTasks(int thread);

  // The work in hand; written only while nobody is inside.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  alignas(64) std::atomic<int64_t> next_{0};
  // Threads inside the work, and kOpen while more may enter.
  alignas(64) std::atomic<uint32_t> inside_{0};
  // Changes with every piece of work, and at the end.
  alignas(64) std::atomic<uint32_t> rounds_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace aerie
