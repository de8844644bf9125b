#include "server/metrics/atomic_histogram.h"

#include <algorithm>
#include <latch>
#include <limits>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/buckets.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> Cumulative(const AtomicHistogram& histogram) {
  std::vector<uint64_t> counts;
  for (const auto& bucket : histogram.Collect().histogram.bucket) {
    counts.push_back(bucket.cumulative_count);
  }
  return counts;
}

TEST(AtomicHistogramTest, PutsAValueOnABoundIntoTheBucketBelowIt) {
  AtomicHistogram histogram({1, 2, 4});
  histogram.Observe(0);
  histogram.Observe(1);
  histogram.Observe(2);
  histogram.Observe(2.0000001);
  histogram.Observe(4.5);
  EXPECT_THAT(Cumulative(histogram), ElementsAre(2, 3, 4, 5));
  const auto collected = histogram.Collect().histogram;
  EXPECT_EQ(collected.sample_count, 5u);
  EXPECT_NEAR(collected.sample_sum, 9.5000001, 1e-12);
  EXPECT_EQ(collected.bucket.back().upper_bound, std::numeric_limits<double>::infinity());
}

TEST(AtomicHistogramTest, LosesNothingToldByManyThreads) {
  AtomicHistogram histogram({1, 2, 4});
  constexpr int kThreads = 4, kEach = 300000;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&histogram, &start, i] {
      start.arrive_and_wait();
      for (int j = 0; j < kEach; ++j) histogram.Observe(i);
    });
  }
  // Cumulative counts never fall, not even in a collection amid the telling.
  const std::vector<uint64_t> amid = Cumulative(histogram);
  EXPECT_TRUE(std::is_sorted(amid.begin(), amid.end()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Cumulative(histogram), ElementsAre(2 * kEach, 3 * kEach, 4 * kEach, 4 * kEach));
  EXPECT_EQ(histogram.Collect().histogram.sample_sum, kEach * (0 + 1 + 2 + 3));
}

TEST(AtomicHistogramDeathTest, RefusesNaNAndBoundsThatDoNotGrow) {
  AtomicHistogram histogram({1});
  EXPECT_DEATH(histogram.Observe(std::numeric_limits<double>::quiet_NaN()), "observed nan");
  EXPECT_DEATH(histogram.Observe(std::numeric_limits<double>::infinity()), "observed inf");
  EXPECT_DEATH(AtomicHistogram({1, 1}), "bucket bounds must grow");
}

TEST(BucketsTest, OfDraftDurationsReachFrom25MicrosecondsToASecond) {
  const std::vector<double> bounds = DraftDurationBuckets();
  EXPECT_EQ(bounds.front(), 25e-6);
  EXPECT_EQ(bounds.back(), 1);
  for (size_t i = 1; i < bounds.size(); ++i) {
    EXPECT_GT(bounds[i] / bounds[i - 1], 1.5) << bounds[i];
    EXPECT_LT(bounds[i] / bounds[i - 1], 1.7) << bounds[i];
  }
}

TEST(BucketsTest, OfAcceptLengthReachFromOneToKPlusOneByQuarters) {
  EXPECT_THAT(AcceptLengthBuckets(1), ElementsAre(1, 1.25, 1.5, 1.75, 2));
  EXPECT_EQ(AcceptLengthBuckets(16).back(), 17);
}

TEST(BucketsTest, OfRatiosHoldTheNumbersThatDivisionGives) {
  const std::vector<double> bounds = RatioBuckets();
  ASSERT_EQ(bounds.size(), 20u);
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(bounds[i - 1], i / 20.0) << i;
  EXPECT_EQ(bounds[2], 3.0 / 20);
}

TEST(BucketsTest, OfCountsEndWithTheMost) {
  EXPECT_THAT(CountBuckets(1), ElementsAre(1));
  EXPECT_THAT(CountBuckets(4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(CountBuckets(17), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17));
  EXPECT_THAT(CountBuckets(64),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64));
}

TEST(BucketsTest, GrowInEveryHistogram) {
  for (const auto& bounds : {DraftDurationBuckets(), RpcDurationBuckets(), AcceptLengthBuckets(128),
                             RatioBuckets(), TokensPerSecondBuckets(), CountBuckets(1024)}) {
    AtomicHistogram checks_its_bounds(bounds);
  }
}

}  // namespace
}  // namespace aerie
