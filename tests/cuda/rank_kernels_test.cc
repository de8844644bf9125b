// Ranking of scores on the device: against a stable sort, and a sum in float64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda/backends.h"

namespace aerie {
namespace {

struct Ranked {
  std::vector<DeviceRowSummary> summaries;
  std::vector<DeviceScore> best;
};

class RankKernelTest : public BackendTest {
 protected:
  Ranked Rank(const std::vector<float>& scores, int32_t rows, int32_t k,
              const std::vector<int32_t>& probes) {
    const auto count = static_cast<int32_t>(scores.size()) / rows;
    const int32_t chunks = RankChunks(count);
    auto* const summaries = Room<DeviceRowSummary>(rows);
    auto* const best = Room<DeviceScore>(rows * k);
    device().Run(RankOp{.scores = In(scores),
                        .rows = rows,
                        .count = count,
                        .k = k,
                        .probes = In(probes),
                        .candidates = Room<DeviceScore>(rows * chunks * k),
                        .chunk_sums = Room<DeviceRowSummary>(rows * chunks),
                        .summaries = summaries,
                        .best = best});
    return {Out(summaries, rows), Out(best, rows * k)};
  }
};

// Scores of few different values: most places are a matter of the lower id.
TEST_P(RankKernelTest, TheBestComeFirstAndOfEqualOnesTheLowerId) {
  for (const int32_t count : {1, 3, 500, 4096, 4097, 9000}) {
    for (const int32_t k : {1, 2, 10, 64}) {
      if (k > count) continue;
      std::vector<float> scores = Numbers(count, 2 * count);
      for (float& score : scores) score = std::round(score * 40.0f) / 4.0f;
      const Ranked ranked = Rank(scores, 2, k, {count - 1, -1});
      for (int row = 0; row < 2; ++row) {
        const float* const own = scores.data() + row * count;
        std::vector<int32_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return own[a] > own[b]; });
        for (int i = 0; i < k; ++i) {
          ASSERT_EQ(ranked.best[row * k + i].id, order[i]) << "place " << i << " of " << count;
          ASSERT_EQ(ranked.best[row * k + i].score, own[order[i]]);
        }
        double sum = 0.0;
        for (int i = 0; i < count; ++i) sum += std::exp(double{own[i]});
        const DeviceRowSummary& summary = ranked.summaries[row];
        EXPECT_EQ(summary.finite, 1);
        EXPECT_EQ(summary.largest, own[order[0]]);
        EXPECT_TRUE(std::abs(summary.largest + std::log(summary.sum) - std::log(sum)) <=
                    2e-6 * (1.0 + std::abs(std::log(sum))))
            << summary.largest << " " << summary.sum;
      }
      EXPECT_EQ(ranked.summaries[0].probe, scores[count - 1]);
    }
  }
}

TEST_P(RankKernelTest, ARowThatIsNotFiniteSaysSoAndTheOthersDoNotFeelIt) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const int32_t at : {0, 4500, 4999}) {
      std::vector<float> scores = Numbers(3, 3 * 5000);
      scores[5000 + at] = bad;
      const Ranked ranked = Rank(scores, 3, 5, {-1, -1, -1});
      EXPECT_EQ(ranked.summaries[0].finite, 1);
      EXPECT_EQ(ranked.summaries[1].finite, 0);
      EXPECT_EQ(ranked.summaries[2].finite, 1);
      EXPECT_EQ(ranked.best[0].score, *std::max_element(scores.begin(), scores.begin() + 5000));
      EXPECT_EQ(ranked.best[10].score, *std::max_element(scores.begin() + 10000, scores.end()));
    }
  }
  const std::vector<float> none(5000, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Rank(none, 1, 64, {7}).summaries[0].finite, 0);
}

TEST_P(RankKernelTest, ScoresBeyondWhatPowersHoldAreSummedUp) {
  const Ranked ranked = Rank({-3e30f, 2e30f, 2e30f, 1e10f}, 1, 2, {-1});
  EXPECT_EQ(ranked.summaries[0].largest, 2e30f);
  EXPECT_EQ(ranked.summaries[0].sum, 2.0f);
  EXPECT_EQ(ranked.best[0].id, 1);
  EXPECT_EQ(ranked.best[1].id, 2);
}

INSTANTIATE_TEST_SUITE_P(Backends, RankKernelTest, testing::ValuesIn(Backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
