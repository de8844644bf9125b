#include "server/kernels/thread_pool.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace aerie {
namespace {

TEST(ThreadPoolTest, EveryTaskRunsOnceAndHasEndedWhenRunReturns) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t round = 0; round < 300; ++round) {
      const int64_t count = round % 17;
      std::vector<int> runs(count, 0);  // no atomics: each task has its own
      pool.Run(count, [&](int64_t task, int) { ++runs[task]; });
      EXPECT_EQ(runs, std::vector<int>(count, 1));
    }
  }
}

TEST(ThreadPoolTest, ThreadsThatRunTogetherHaveNumbersOfTheirOwn) {
  ThreadPool pool(3);
  std::atomic<int> inside[3] = {};
  std::atomic<bool> mixed = false;
  for (int round = 0; round < 200; ++round) {
    pool.Run(50, [&](int64_t, int thread) {
      if (thread < 0 || thread > 2 || inside[thread].fetch_add(1) != 0) mixed = true;
      inside[thread].fetch_sub(1);
    });
  }
  EXPECT_FALSE(mixed);
}

// A thread that comes late for a piece of four may find one of two in hand.
TEST(ThreadPoolTest, OnlyThreadsInUseShareTheWork) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.in_use(), 4);
  std::atomic<int> strangers = 0;
  for (int round = 0; round < 2000; ++round) {
    const int in_use = 1 + round % 4;
    pool.Use(in_use);
    std::vector<int> runs(9, 0);
    pool.Run(9, [&](int64_t task, int thread) {
      if (thread >= in_use) ++strangers;
      ++runs[static_cast<size_t>(task)];
    });
    ASSERT_EQ(runs, std::vector<int>(9, 1));
  }
  EXPECT_EQ(strangers, 0);
}

// Both wait for each other within the work: one thread alone would never end.
TEST(ThreadPoolTest, TasksRunAtTheSameTimeOnThreadsOfDifferentNumbers) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  int thread_of[2] = {-1, -1};
  pool.Run(2, [&](int64_t task, int thread) {
    thread_of[task] = thread;
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(thread_of[0] + thread_of[1], 1);
  EXPECT_NE(thread_of[0], thread_of[1]);
}

TEST(ThreadPoolTest, RunWaitsForATaskThatTakesLongerThanTheCallers) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  std::atomic<bool> ended = false;
  pool.Run(2, [&](int64_t, int thread) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
    if (thread == 0) return;
    for (int i = 0; i < 10000; ++i) std::this_thread::yield();
    ended = true;
  });
  EXPECT_TRUE(ended);
}

// How many of the process's threads run or want to, by what the system says.
int RunningThreads() {
  int running = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');  // a name may hold anything
    if (name_end != std::string::npos && text.compare(name_end, 4, ") R ") == 0) ++running;
  }
  return running;
}

// Threads that spin would always want to run, so this would not end.
TEST(ThreadPoolTest, ThreadsThatHaveNothingToDoSleep) {
  ThreadPool pool(4);
  pool.Run(8, [](int64_t, int) {});
  while (RunningThreads() > 1) std::this_thread::yield();
  pool.Run(8, [](int64_t, int) {});
  while (RunningThreads() > 1) std::this_thread::yield();
}

}  // namespace
}  // namespace aerie
