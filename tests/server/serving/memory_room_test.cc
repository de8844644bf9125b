// Room for a load, read from files as the kernel writes them.
#include "server/serving/memory_room.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// A /proc and a /sys/fs/cgroup of our own.
class MemoryRoomTest : public testing::Test {
 protected:
  MemoryRoomTest()
      : root_(std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo",
          "MemTotal:       16384000 kB\nMemFree:          100 kB\n"
          "MemAvailable:    4096000 kB\n");
  }
  ~MemoryRoomTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // A cgroup of v2.
  void Group(const std::string& folder, const std::string& max, int64_t current, int64_t idle) {
    Write("cgroup" + folder + "/memory.max", max + "\n");
    Write("cgroup" + folder + "/memory.current", std::to_string(current) + "\n");
    Write("cgroup" + folder + "/memory.stat",
          "anon 5\nfile 7\nactive_file 99999999\ninactive_file " + std::to_string(idle) + "\n");
  }
  MemoryRoom Room() const {
    return FindMemoryRoom((root_ / "proc").string(), (root_ / "cgroup").string());
  }

  const std::filesystem::path root_;
};

TEST_F(MemoryRoomTest, IsTheMachinesWithoutALimit) {
  Write("proc/self/cgroup", "0::/user.slice\n");
  Group("/user.slice", "max", 500 * kMiB, 0);
  EXPECT_EQ(Room().bytes, 4'000 * kMiB);
  EXPECT_EQ(Room().source, "MemAvailable of this machine");
}

TEST_F(MemoryRoomTest, IsWhatTheCgroupLeavesWithFilesThatNobodyUses) {
  Write("proc/self/cgroup", "0::/pod/aerie\n");
  Group("/pod/aerie", std::to_string(1000 * kMiB), 900 * kMiB, 300 * kMiB);
  EXPECT_EQ(Room().bytes, 400 * kMiB);
  EXPECT_EQ(Room().source, "memory.max of the cgroup /pod/aerie");
}

TEST_F(MemoryRoomTest, IsTheLeastOfAllCgroupsAboveTheProcess) {
  Write("proc/self/cgroup", "0::/pod/aerie\n");
  Group("/pod/aerie", "max", 100 * kMiB, 0);
  Group("/pod", std::to_string(500 * kMiB), 450 * kMiB, 0);
  EXPECT_EQ(Room().bytes, 50 * kMiB);
  EXPECT_EQ(Room().source, "memory.max of the cgroup /pod");
  // In a container of its own the process sees its group as the root.
  Write("proc/self/cgroup", "0::/\n");
  Group("", std::to_string(200 * kMiB), 190 * kMiB, 0);
  EXPECT_EQ(Room().bytes, 10 * kMiB);
}

TEST_F(MemoryRoomTest, ReadsTheOlderCgroupsToo) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n0::/docker/x\n");
  Write("cgroup/memory/docker/x/memory.limit_in_bytes", std::to_string(300 * kMiB) + "\n");
  Write("cgroup/memory/docker/x/memory.usage_in_bytes", std::to_string(280 * kMiB) + "\n");
  Write("cgroup/memory/docker/x/memory.stat", "total_inactive_file 1048576\n");
  EXPECT_EQ(Room().bytes, 21 * kMiB);
}

TEST_F(MemoryRoomTest, IsNothingWhenMoreIsUsedThanAllowed) {
  Write("proc/self/cgroup", "0::/pod\n");
  Group("/pod", std::to_string(100 * kMiB), 120 * kMiB, 0);
  EXPECT_EQ(Room().bytes, 0);
}

TEST_F(MemoryRoomTest, IsNotLimitedByWhatCannotBeRead) {
  std::filesystem::remove_all(root_);
  EXPECT_TRUE(CheckMemory("a", {.weights = int64_t{1} << 50, .draft_kv = 1}, Room()).ok());
}

TEST_F(MemoryRoomTest, IsThereOnThisMachine) {
  const MemoryRoom room = FindMemoryRoom("/proc", "/sys/fs/cgroup");
  EXPECT_GT(room.bytes, 0);
  EXPECT_LT(room.bytes, int64_t{1} << 50);
}

TEST(CheckMemoryTest, SaysWhatIsMissingInNumbers) {
  const MemoryNeed need{.weights = 700 * kMiB, .draft_kv = 1024 * kMiB};
  EXPECT_TRUE(CheckMemory("chat", need, {1724 * kMiB, "here"}).ok());
  const absl::Status refused = CheckMemory("chat", need, {1724 * kMiB - 1, "MemAvailable"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("drafter chat takes 1724.0 MiB (weights 700.0 MiB, draft KV 1024.0 MiB) and "
                "there are 1724.0 MiB (MemAvailable); expected room for it"));
}

}  // namespace
}  // namespace aerie
