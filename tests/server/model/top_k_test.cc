#include "server/model/top_k.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::ElementsAre;

const std::vector<int32_t> kTargets = {100, 102, 105, 109, 114};

std::vector<int32_t> TopTokens(const std::vector<float>& logits, int32_t k) {
  std::vector<int32_t> tokens;
  const auto top = TopK(logits, k, kTargets);
  for (const ScoredToken& scored : *top) tokens.push_back(scored.token);
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
  const auto top = TopK({std::vector<float>{std::log(1.0f), std::log(2.0f), std::log(4.0f),
                                            std::log(8.0f), std::log(1.0f)}},
                        2, kTargets);
  EXPECT_NEAR((*top)[0].log_prob, std::log(8.0 / 16.0), 1e-6);
  EXPECT_NEAR((*top)[1].log_prob, std::log(4.0 / 16.0), 1e-6);
}

TEST(TopKTest, LargeLogitsDoNotOverflow) {
  const auto top = TopK({std::vector<float>{3e38f, -3e38f, 0, 0, 0}}, 1, kTargets);
  EXPECT_EQ((*top)[0].token, 100);
  EXPECT_EQ((*top)[0].log_prob, 0.0f);
}

TEST(TopKTest, ARowWithANonFiniteLogitGivesNoToken) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < kTargets.size(); ++at) {
      std::vector<float> logits = {0.5f, 2.0f, -1.0f, 7.0f, 1.0f};
      logits[at] = bad;
      EXPECT_FALSE(TopK(logits, 1, kTargets).has_value()) << bad << " at " << at;
    }
  }
}

}  // namespace
}  // namespace aerie
