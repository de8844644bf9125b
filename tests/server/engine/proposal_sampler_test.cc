#include "server/engine/proposal_sampler.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/counter_random.h"
#include "tests/testing/chi_square.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::IsEmpty;

std::vector<ScoredToken> Tokens(const std::vector<float>& log_probs) {
  std::vector<ScoredToken> tokens;
  for (const float log_prob : log_probs) {
    tokens.push_back({static_cast<int32_t>(100 - tokens.size()), log_prob});
  }
  return tokens;
}

TEST(CounterRandomTest, GivesThePublishedBlocks) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t ones = 0xffffffff;
  EXPECT_THAT(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(CounterRandomTest, EveryBitOfThePlaceCounts) {
  std::set<double> seen = {UniformAt(0, 0, 0, 0)};
  size_t places = 1;
  for (int bit = 0; bit < 64; ++bit, places += 2) {
    seen.insert(UniformAt(uint64_t{1} << bit, 0, 0, 0));
    seen.insert(UniformAt(0, static_cast<int64_t>(uint64_t{1} << bit), 0, 0));
  }
  for (int bit = 0; bit < 32; ++bit, places += 2) {
    seen.insert(UniformAt(0, 0, static_cast<int32_t>(uint32_t{1} << bit), 0));
    seen.insert(UniformAt(0, 0, 0, uint32_t{1} << bit));
  }
  EXPECT_EQ(seen.size(), places);
}

TEST(CounterRandomTest, IsUniformWithFiftyThreeBits) {
  std::vector<int64_t> counts(64);
  bool has_low_bits = false;
  for (int64_t position = 0; position < 64000; ++position) {
    const double u = UniformAt(7, position, 1, 0);
    ASSERT_TRUE(u >= 0 && u < 1) << u;
    ++counts[static_cast<size_t>(u * 64)];
    const double scaled = u * 0x1p32;
    has_low_bits |= scaled != std::floor(scaled);
  }
  EXPECT_TRUE(has_low_bits);
  EXPECT_GT(TestAgainst(counts, std::vector<double>(64, 1. / 64)).p_value, kFalseAlarm);
}

TEST(ProposalProbabilitiesTest, RenormalisesOverTheEntriesInTheirOrder) {
  const auto top = Tokens({std::log(0.3f), std::log(0.1f), std::log(0.2f)});
  EXPECT_THAT(
      ProposalProbabilities(top, 1.0f),
      ElementsAre(FloatNear(0.5f, 1e-6f), FloatNear(1 / 6.f, 1e-6f), FloatNear(1 / 3.f, 1e-6f)));
}

TEST(ProposalProbabilitiesTest, TemperatureIsAPowerOfTheProbabilities) {
  const auto top = Tokens({std::log(0.4f), std::log(0.2f)});
  EXPECT_THAT(ProposalProbabilities(top, 0.5f),
              ElementsAre(FloatNear(0.8f, 1e-6f), FloatNear(0.2f, 1e-6f)));
  EXPECT_THAT(ProposalProbabilities(top, 2.0f),
              ElementsAre(FloatNear(0.585786f, 1e-5f), FloatNear(0.414214f, 1e-5f)));
}

TEST(ProposalProbabilitiesTest, TheSmallestTemperatureGivesTheBestItsWholeWeight) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_THAT(ProposalProbabilities(Tokens({-2.0f, -2.5f, -90.0f}), tiny), ElementsAre(1, 0, 0));
  EXPECT_THAT(ProposalProbabilities(Tokens({-2.0f, -2.0f, -90.0f}), tiny),
              ElementsAre(0.5f, 0.5f, 0));
}

TEST(ProposalProbabilitiesTest, UnlikelyTokensAloneStillSumToOne) {
  EXPECT_THAT(ProposalProbabilities(Tokens({-5000.0f, -5000.0f}), 1.0f), ElementsAre(0.5f, 0.5f));
}

TEST(ProposalProbabilitiesTest, NoEntriesHaveNoProbabilities) {
  EXPECT_THAT(ProposalProbabilities({}, 1.0f), IsEmpty());
}

TEST(DrawWithoutReplacementTest, DrawsAreDistinctAndNoneIsOfAnImpossibleEntry) {
  const std::vector<float> probs = {0.5f, 0, 0.25f, 1e-30f, 0, 0.25f};
  for (int64_t position = 0; position < 2000; ++position) {
    const auto drawn = DrawWithoutReplacement(probs, 6, {3, position, 0});
    EXPECT_THAT(std::set<size_t>(drawn.begin(), drawn.end()), ElementsAre(0, 2, 3, 5));
    EXPECT_EQ(drawn.size(), 4u);
  }
}

TEST(DrawWithoutReplacementTest, ALargerCountAddsToASmallerOnesDraws) {
  const std::vector<float> probs(20, 0.05f);
  const auto all = DrawWithoutReplacement(probs, 20, {9, 5, 2});
  for (size_t count = 0; count <= 20; ++count) {
    EXPECT_EQ(DrawWithoutReplacement(probs, count, {9, 5, 2}),
              std::vector<size_t>(all.begin(), all.begin() + static_cast<int64_t>(count)));
  }
}

TEST(DrawWithoutReplacementTest, EachPartOfTheKeyMatters) {
  const std::vector<float> probs(1000, 1e-3f);
  std::set<std::vector<size_t>> draws;
  for (const DrawKey key : {DrawKey{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}}) {
    draws.insert(DrawWithoutReplacement(probs, 3, key));
    EXPECT_EQ(DrawWithoutReplacement(probs, 3, key), DrawWithoutReplacement(probs, 3, key));
  }
  EXPECT_EQ(draws.size(), 4u);
}

TEST(DrawWithoutReplacementTest, WeightsNeedNotSumToOne) {
  EXPECT_EQ(DrawWithoutReplacement({1, 2, 5}, 3, {4, 4, 4}),
            DrawWithoutReplacement({0.125f, 0.25f, 0.625f}, 3, {4, 4, 4}));
}

// The first draw follows the probabilities, and the first two together the probabilities with the
// first one taken out of the rest.
TEST(DrawWithoutReplacementTest, FirstAndSecondDrawsHaveTheRightDistribution) {
  const auto top = Tokens({-0.5f, -1.0f, -1.1f, -2.0f, -3.0f, -3.5f, -5.0f, -6.0f});
  const std::vector<float> probs = ProposalProbabilities(top, 0.9f);
  const size_t n = probs.size();
  const double sum = std::accumulate(probs.begin(), probs.end(), 0.0);
  std::vector<double> first(n), pair(n * n);
  for (size_t a = 0; a < n; ++a) {
    first[a] = probs[a] / sum;
    for (size_t b = 0; b < n; ++b) {
      if (a != b) pair[a * n + b] = first[a] * probs[b] / (sum - probs[a]);
    }
  }
  std::vector<int64_t> first_counts(n), pair_counts(n * n);
  for (int64_t draw = 0; draw < 200000; ++draw) {
    // Both parts of the key move: neither may be a bad counter.
    const auto drawn =
        DrawWithoutReplacement(probs, 3, {11, draw / 50, static_cast<int32_t>(draw % 50)});
    ++first_counts[drawn[0]];
    ++pair_counts[drawn[0] * n + drawn[1]];
  }
  EXPECT_GT(TestAgainst(first_counts, first).p_value, kFalseAlarm);
  EXPECT_GT(TestAgainst(pair_counts, pair).p_value, kFalseAlarm);
}

}  // namespace
}  // namespace aerie
