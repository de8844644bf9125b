#include "client/loadtest/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "client/loadtest/random.h"

namespace aerie::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

TEST(HistogramTest, IsZeroWhenEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.Quantile(0.99), absl::ZeroDuration());
  EXPECT_EQ(histogram.Mean(), absl::ZeroDuration());
  EXPECT_EQ(histogram.StandardDeviation(), absl::ZeroDuration());
}

TEST(HistogramTest, KeepsOneValueExactlyWhateverItsSize) {
  for (const absl::Duration value :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Nanoseconds(2047),
        absl::Nanoseconds(2048), absl::Nanoseconds(123'456'789), absl::Seconds(3601)}) {
    Histogram histogram;
    histogram.Record(value);
    for (const double quantile : {0.0, 0.5, 1.0}) EXPECT_EQ(histogram.Quantile(quantile), value);
    EXPECT_EQ(histogram.min(), value);
    EXPECT_EQ(histogram.max(), value);
  }
}

TEST(HistogramTest, CountsNegativeTimesAsZero) {
  Histogram histogram;
  histogram.Record(-absl::Seconds(1));
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  EXPECT_EQ(histogram.count(), 1);
}

TEST(HistogramTest, GivesEveryQuantileToThreeDigitsAndNeverBelowTheTruth) {
  Random random(7, 0);
  Histogram histogram;
  std::vector<double> values;  // nanoseconds
  for (int i = 0; i < 20'000; ++i) {
    // From 100 ns to 100 s, evenly over the magnitudes.
    const double value = std::floor(std::pow(10.0, 2.0 + 9.0 * random.Uniform()));
    values.push_back(value);
    histogram.Record(absl::Nanoseconds(value));
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(quantile * 20'000)) - 1;
    const double truth = values[rank];
    const double got = absl::ToDoubleNanoseconds(histogram.Quantile(quantile));
    EXPECT_THAT(got, AllOf(Ge(truth), Le(truth * 1.001))) << "quantile " << quantile;
  }
}

TEST(HistogramTest, KnowsMeanAndStandardDeviation) {
  Histogram histogram;
  for (const int64_t milliseconds : {2, 4, 4, 4, 5, 5, 7, 9}) {
    histogram.Record(absl::Milliseconds(milliseconds));
  }
  EXPECT_EQ(histogram.Mean(), absl::Milliseconds(5));
  const double deviation = absl::ToDoubleMilliseconds(histogram.StandardDeviation());
  EXPECT_THAT(deviation, AllOf(Ge(1.999), Le(2.001)));
}

TEST(HistogramTest, MergesToWhatOneHistogramWouldHaveRecorded) {
  Histogram left, right, both;
  Random random(3, 0);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration value = absl::Nanoseconds(random.Below(1 << 30));
    (i % 3 == 0 ? left : right).Record(value);
    both.Record(value);
  }
  left.Merge(right);
  left.Merge(Histogram());
  EXPECT_EQ(left.count(), both.count());
  EXPECT_EQ(left.min(), both.min());
  EXPECT_EQ(left.max(), both.max());
  for (const double quantile : {0.01, 0.5, 0.99}) {
    EXPECT_EQ(left.Quantile(quantile), both.Quantile(quantile));
  }
}

}  // namespace
}  // namespace aerie::loadtest
