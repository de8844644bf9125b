#include "server/model/cpu_budget.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/common/safetensors/safetensors_writer.h"
#include "tests/server/checkpoint/tiny_head.h"

namespace aerie {
namespace {

TEST(CpuBudgetTest, AQuotaIsTimeOverPeriod) {
  EXPECT_EQ(CpusFromCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(CpusFromCpuMax("max 100000\n"), std::nullopt);
  for (const char* malformed : {"", "1", "1 2 3", "-1 100000", "5 0", "a b"}) {
    EXPECT_EQ(CpusFromCpuMax(malformed), std::nullopt) << malformed;
  }
}

TEST(CpuBudgetTest, TheSmallestQuotaOnTheWayCounts) {
  const TemporaryFolder mount;
  std::filesystem::create_directories(mount.path("a/b"));
  ASSERT_TRUE(WriteFile(mount.path("cpu.max"), "max 100000\n"));
  ASSERT_TRUE(WriteFile(mount.path("a/cpu.max"), "200000 100000\n"));
  ASSERT_TRUE(WriteFile(mount.path("a/b/cpu.max"), "300000 100000\n"));
  EXPECT_EQ(CgroupCpus(mount.path(), "0::/a/b\n"), 2.0);
  EXPECT_EQ(CgroupCpus(mount.path(), "0::/\n"), std::nullopt);
  // Seen from inside a container, its own cgroup is the root.
  ASSERT_TRUE(WriteFile(mount.path("cpu.max"), "50000 100000\n"));
  EXPECT_EQ(CgroupCpus(mount.path(), "0::/\n"), 0.5);
}

TEST(CpuBudgetTest, TheOlderLayoutIsReadToo) {
  const TemporaryFolder mount;
  std::filesystem::create_directories(mount.path("cpu"));
  ASSERT_TRUE(WriteFile(mount.path("cpu/cpu.cfs_quota_us"), "400000\n"));
  ASSERT_TRUE(WriteFile(mount.path("cpu/cpu.cfs_period_us"), "100000\n"));
  EXPECT_EQ(CgroupCpus(mount.path(), "5:cpu,cpuacct:/docker/x\n"), 4.0);
  ASSERT_TRUE(WriteFile(mount.path("cpu/cpu.cfs_quota_us"), "-1\n"));
  EXPECT_EQ(CgroupCpus(mount.path(), "5:cpu,cpuacct:/docker/x\n"), std::nullopt);
}

TEST(CpuBudgetTest, ThereIsAlwaysAThread) {
  EXPECT_GE(FindCpuBudget().threads, 1);
  EXPECT_NE(FindCpuBudget().source, "");
}

TEST(CpuBudgetTest, APassUsesAThreadForEach32MiBOfItsWork) {
  EXPECT_EQ(ThreadsWorth(0, 8), 1);
  EXPECT_EQ(ThreadsWorth((48 << 20) - 1, 8), 1);
  EXPECT_EQ(ThreadsWorth(48 << 20, 8), 2) << "rounded";
  EXPECT_EQ(ThreadsWorth(48 << 20, 1), 1);
  EXPECT_EQ(ThreadsWorth(int64_t{1} << 40, 8), 8);
}

TEST(CpuBudgetTest, ASmallDrafterUsesFewThreads) {
  const CpuBudget budget{8, "CPU affinity"};
  EXPECT_EQ(ThreadsFor(17 << 20, budget).threads, 1);
  EXPECT_EQ(ThreadsFor(100 << 20, budget).threads, 3);
  EXPECT_EQ(ThreadsFor(int64_t{1} << 30, budget).threads, 8);
  EXPECT_EQ(ThreadsFor(int64_t{1} << 30, budget).source, "CPU affinity");
}

TEST(CpuBudgetTest, BFloat16ProductsAreAFlagOfTheCpu) {
  EXPECT_EQ(BFloat16Flag("flags\t\t: fpu avx512f avx512_bf16 fsrm\n"), "avx512_bf16");
  EXPECT_EQ(BFloat16Flag("processor : 0\nflags\t\t: fpu amx_bf16\n"), "amx_bf16");
  EXPECT_EQ(BFloat16Flag("flags\t\t: fpu avx512f avx512_bf16x\n"), std::nullopt);
  EXPECT_EQ(BFloat16Flag("model name : avx512_bf16\n"), std::nullopt);
}

}  // namespace
}  // namespace aerie
