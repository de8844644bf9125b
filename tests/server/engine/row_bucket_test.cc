#include "server/engine/row_bucket.h"

#include "gtest/gtest.h"

namespace aerie {
namespace {

constexpr absl::Duration kNow = absl::ZeroDuration();
const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(RowBucketTest, GivesTheBurstAtOnceAndThenTheRate) {
  RowBucket bucket(/*rows_per_second=*/100, /*burst=*/300);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(bucket.Take(1, kStart), kNow) << i;
  EXPECT_EQ(bucket.Take(1, kStart), absl::Milliseconds(10));
  EXPECT_EQ(bucket.Take(1, kStart + absl::Milliseconds(9)), absl::Milliseconds(1));
  EXPECT_EQ(bucket.Take(1, kStart + absl::Milliseconds(10)), kNow);
  EXPECT_EQ(bucket.Take(1, kStart + absl::Milliseconds(10)), absl::Milliseconds(10));
}

TEST(RowBucketTest, HoldsTheRateOverTimeHoweverCallsAreCut) {
  for (const int64_t rows : {1, 7, 400, 5000}) {
    RowBucket bucket(1000, 500);
    int64_t taken = 0;
    const absl::Time end = kStart + absl::Seconds(100);
    for (absl::Time now = kStart; now < end; now += absl::Microseconds(300)) {
      if (bucket.Take(rows, now) == kNow) taken += rows;
    }
    EXPECT_LE(taken, 100 * 1000 + 500 + rows) << rows;
    EXPECT_GE(taken, 100 * 1000) << rows;
  }
}

TEST(RowBucketTest, TakesACallOfMoreThanTheBurstAndLetsItBePaidBack) {
  RowBucket bucket(1000, 100);
  EXPECT_EQ(bucket.Take(4096, kStart), kNow);
  EXPECT_EQ(bucket.Take(1, kStart), absl::Milliseconds(4096 - 100 + 1));
  EXPECT_FALSE(bucket.IsFull(kStart + absl::Milliseconds(4095)));
  EXPECT_TRUE(bucket.IsFull(kStart + absl::Milliseconds(4096)));
}

TEST(RowBucketTest, SavesNoMoreThanTheBurst) {
  RowBucket bucket(1000, 100);
  EXPECT_EQ(bucket.Take(1, kStart), kNow);
  const absl::Time later = kStart + absl::Hours(10);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(bucket.Take(1, later), kNow) << i;
  EXPECT_GT(bucket.Take(1, later), kNow);
}

TEST(RowBucketTest, TakesACallWithoutRowsEvenInDebt) {
  RowBucket bucket(1, 1);
  EXPECT_EQ(bucket.Take(1000, kStart), kNow);
  EXPECT_EQ(bucket.Take(0, kStart), kNow);
}

TEST(RowBucketTest, ShutsNobodyOutWhenTheClockIsSetBack) {
  RowBucket bucket(1000, 100);
  EXPECT_EQ(bucket.Take(100, kStart), kNow);
  const absl::Time before = kStart - absl::Hours(1);
  EXPECT_EQ(bucket.Take(1, before), absl::Milliseconds(1));
  EXPECT_EQ(bucket.Take(1, before + absl::Milliseconds(1)), kNow);
}

}  // namespace
}  // namespace aerie
