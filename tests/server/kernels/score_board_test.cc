#include "server/kernels/score_board.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"

namespace aerie {
namespace {

// Adds the chunks of `scores` in the order of `chunks`, from threads in turn.
void AddAll(ScoreBoard& board, const std::vector<std::vector<float>>& scores,
            const std::vector<int64_t>& chunks, int threads, CpuLevel level) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    for (size_t row = 0; row < scores.size(); ++row)
      board.Add(static_cast<int>(i) % threads, static_cast<int64_t>(row), chunks[i],
                scores[row].data() + chunks[i] * ScoreBoard::kChunk, level);
  }
}

std::vector<int32_t> BestOf(const std::vector<float>& scores, int32_t k) {
  std::vector<int32_t> ids(scores.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  ids.resize(k);
  return ids;
}

class ScoreBoardTest : public testing::TestWithParam<NamedLevel> {};

TEST_P(ScoreBoardTest, RanksAndSumsUpWhateverTheOrderOfChunksAndThreads) {
  std::mt19937 random(3);
  ScoreBoard board;
  for (const int64_t count : {1, 10, 255, 256, 257, 1000, 6144}) {
    for (const int32_t k : {1, 4, 16, 300}) {
      if (k > count) continue;
      std::vector<std::vector<float>> scores(3);
      // Few distinct values, so that equal scores stand in different chunks.
      for (auto& row : scores) {
        for (int64_t i = 0; i < count; ++i)
          row.push_back(static_cast<float>(static_cast<int>(random() % 200)) * 0.1f);
      }
      double log_sum_exp = 0.0;
      for (const bool backwards : {false, true}) {
        const int threads = backwards ? 3 : 1;
        board.Begin(3, count, k, threads);
        std::vector<int64_t> chunks(board.chunks());
        std::iota(chunks.begin(), chunks.end(), 0);
        if (backwards) std::reverse(chunks.begin(), chunks.end());
        AddAll(board, scores, chunks, threads, GetParam().level);
        for (size_t row = 0; row < scores.size(); ++row) {
          const RowScores out = board.Finish(static_cast<int64_t>(row));
          ASSERT_TRUE(out.summary.finite);
          const std::vector<int32_t> expected = BestOf(scores[row], k);
          for (int32_t i = 0; i < k; ++i) {
            ASSERT_EQ(out.best[i].id, expected[i]) << "place " << i << " of " << count;
            ASSERT_EQ(out.best[i].score, scores[row][expected[i]]);
          }
          double total = 0.0;
          for (const float score : scores[row]) total += std::exp(double{score});
          ASSERT_NEAR(out.summary.log_sum_exp, std::log(total), 1e-6 * (1 + std::log(total)));
          if (row == 1 && backwards) {
            EXPECT_EQ(out.summary.log_sum_exp, log_sum_exp);
          }
          if (row == 1) log_sum_exp = out.summary.log_sum_exp;
        }
      }
    }
  }
}

TEST_P(ScoreBoardTest, ARowWithAScoreThatIsNoNumberSaysSo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    std::vector<std::vector<float>> scores(2, std::vector<float>(700, 1.0f));
    scores[1][600] = bad;
    ScoreBoard board;
    board.Begin(2, 700, 2, 1);
    AddAll(board, scores, {0, 1, 2}, 1, GetParam().level);
    EXPECT_TRUE(board.Finish(0).summary.finite);
    EXPECT_FALSE(board.Finish(1).summary.finite);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ScoreBoardTest, testing::ValuesIn(Levels()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
