#include "server/model/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::ElementsAre;

const std::vector<int32_t> kTargets = {100, 102, 105, 109, 114};

std::vector<int32_t> TopTokens(const std::vector<float>& logits, int32_t k) {
  std::vector<int32_t> tokens;
  for (const ScoredToken& scored : JudgeRow(logits, k, -1, kTargets).top)
    tokens.push_back(scored.token);
  return tokens;
}

TEST(TopKTest, BestFirstInTargetIds) {
  EXPECT_THAT(TopTokens({0.5f, 2.0f, -1.0f, 7.0f, 1.0f}, 3), ElementsAre(109, 102, 114));
  EXPECT_THAT(TopTokens({0.5f, 2.0f, -1.0f, 7.0f, 1.0f}, 5), ElementsAre(109, 102, 114, 100, 105));
}

TEST(TopKTest, EqualScoresGiveTheLowerIdFirst) {
  EXPECT_THAT(TopTokens({1.0f, 3.0f, 1.0f, 3.0f, 3.0f}, 1), ElementsAre(102));
  EXPECT_THAT(TopTokens({1.0f, 3.0f, 1.0f, 3.0f, 3.0f}, 4), ElementsAre(102, 109, 114, 100));
  EXPECT_THAT(TopTokens({0.0f, -0.0f, 0.0f, -0.0f, 0.0f}, 2), ElementsAre(100, 102));
}

TEST(TopKTest, LogProbabilitiesAreOverTheWholeRow) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(4.0f), std::log(8.0f),
                                     std::log(1.0f)};
  const RowOutput out = JudgeRow(logits, 2, 102, kTargets);
  EXPECT_NEAR(out.top[0].log_prob, std::log(8.0 / 16.0), 1e-6);
  EXPECT_NEAR(out.top[1].log_prob, std::log(4.0 / 16.0), 1e-6);
  EXPECT_NEAR(out.probe_log_prob, std::log(2.0 / 16.0), 1e-6);
}

TEST(TopKTest, AProbeOutsideTheDraftVocabularyIsImpossible) {
  const std::vector<float> logits = {1, 1, 1, 1, 1};
  for (const int32_t outside : {0, 99, 101, 113, 115}) {
    EXPECT_EQ(JudgeRow(logits, 1, outside, kTargets).probe_log_prob,
              -std::numeric_limits<float>::infinity())
        << outside;
  }
  EXPECT_EQ(JudgeRow(logits, 1, -1, kTargets).probe_log_prob, 0.0f);
}

// Many of many, with many equal scores, against a full sort.
TEST(TopKTest, HundredsOfThousandsComeInOrder) {
  constexpr int32_t kCount = 32000;
  std::vector<int32_t> targets(kCount), order(kCount);
  std::vector<float> logits(kCount);
  std::mt19937 random(3);
  for (int32_t id = 0; id < kCount; ++id) {
    targets[id] = 3 * id + 1;
    order[id] = id;
    logits[id] = static_cast<float>(random() % 5000) * 0.01f;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  for (const int32_t k : {1, 2, 64, 300, kCount}) {
    const RowOutput out = JudgeRow(logits, k, -1, targets);
    ASSERT_EQ(out.top.size(), k);
    for (int32_t i = 0; i < k; ++i)
      ASSERT_EQ(out.top[i].token, targets[order[i]]) << i << " of " << k;
  }
}

TEST(TopKTest, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {3e38f, -3e38f, 0, 0, 0};
  const RowOutput out = JudgeRow(logits, 1, -1, kTargets);
  EXPECT_EQ(out.top.at(0).token, 100);
  EXPECT_EQ(out.top[0].log_prob, 0.0f);
}

TEST(TopKTest, ARowWithANonFiniteLogitGivesNoToken) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < kTargets.size(); ++at) {
      std::vector<float> logits = {0.5f, 2.0f, -1.0f, 7.0f, 1.0f};
      logits[at] = bad;
      const RowOutput out = JudgeRow(logits, 1, 100, kTargets);
      EXPECT_FALSE(out.finite) << bad << " at " << at;
      EXPECT_TRUE(out.top.empty());
    }
  }
}

}  // namespace
}  // namespace aerie
