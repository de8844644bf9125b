#include "server/engine/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace aerie {
namespace {

struct DivideCase {
  std::string name;
  int64_t total;
  std::vector<ShareClaim> claims;  // least, most, weight
  std::vector<int64_t> shares;
};

class DivideFairlyTest : public ::testing::TestWithParam<DivideCase> {};

TEST_P(DivideFairlyTest, Divides) {
  const DivideCase& c = GetParam();
  EXPECT_EQ(DivideFairly(c.claims, c.total, 0), c.shares);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DivideFairlyTest,
    ::testing::ValuesIn(std::vector<DivideCase>{
        {"NobodyGetsNothing", 5, {}, {}},
        {"ThereIsEnoughForAll", 100, {{0, 3, 1}, {2, 90, 9}, {0, 0, 1}}, {3, 90, 0}},
        {"InProportionToTheWeights", 60, {{0, 99, 1}, {0, 99, 2}, {0, 99, 3}}, {10, 20, 30}},
        {"WhatOneDoesNotTakeGoesToTheOthers", 60, {{0, 4, 3}, {0, 99, 1}, {0, 99, 3}}, {4, 14, 42}},
        {"TheLeastIsKept", 60, {{30, 99, 1}, {0, 99, 1}, {0, 99, 1}}, {30, 15, 15}},
        // Taking the upper bound first would leave the third with less than its least.
        {"BoundsOnBothSides", 30, {{0, 9, 1}, {0, 99, 1}, {18, 99, 1}}, {6, 6, 18}},
        {"AClaimMayBeAsLargeAsANumber", 8, {{0, INT64_MAX, 1000}, {0, INT64_MAX, 1000}}, {4, 4}},
    }),
    [](const auto& test) { return test.param.name; });

// What the shares would be if a row could be cut: every claim at the same level for its weight, but
// within its bounds. Found by bisection.
std::vector<double> UncutShares(const std::vector<ShareClaim>& claims, double total) {
  const auto at = [&](double level) {
    std::vector<double> shares;
    for (const ShareClaim& claim : claims) {
      shares.push_back(std::clamp(level * claim.weight, static_cast<double>(claim.least),
                                  static_cast<double>(claim.most)));
    }
    return shares;
  };
  double low = 0, high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    const std::vector<double> shares = at(middle);
    (std::accumulate(shares.begin(), shares.end(), 0.0) < total ? low : high) = middle;
  }
  return at(high);
}

std::vector<ShareClaim> RandomClaims(std::mt19937* random, int64_t* total) {
  const auto number = [&](int most) {
    return static_cast<int32_t>((*random)() % static_cast<uint32_t>(most + 1));
  };
  std::vector<ShareClaim> claims(static_cast<size_t>(1 + number(6)));
  int64_t least = 0;
  for (ShareClaim& claim : claims) {
    claim.most = number(40);
    claim.least = number(2) == 0 ? number(static_cast<int>(claim.most)) : 0;
    claim.weight = 1 + number(number(1) == 0 ? 2 : 999);
    least += claim.least;
  }
  *total = least + number(60);
  return claims;
}

TEST(DivideFairlyTest, EveryShareIsWithinARowOfTheUncutOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    int64_t total = 0;
    const std::vector<ShareClaim> claims = RandomClaims(&random, &total);
    const std::vector<int64_t> shares = DivideFairly(claims, total, random());
    const std::vector<double> uncut = UncutShares(claims, static_cast<double>(total));
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
      ASSERT_TRUE(shares[i] >= claims[i].least && shares[i] <= claims[i].most);
      ASSERT_TRUE(std::abs(static_cast<double>(shares[i]) - uncut[i]) < 1)
          << shares[i] << " for " << uncut[i];
      sum += shares[i];
      most += claims[i].most;
    }
    ASSERT_EQ(sum, std::min(total, most));
  }
}

TEST(DivideFairlyTest, OverManyTurnsNobodyIsARowShort) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    int64_t total = 0;
    const std::vector<ShareClaim> claims = RandomClaims(&random, &total);
    const std::vector<double> uncut = UncutShares(claims, static_cast<double>(total));
    std::vector<double> sums(claims.size());
    constexpr int kTurns = 2000;
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::vector<int64_t> shares = DivideFairly(claims, total, static_cast<uint64_t>(turn));
      for (size_t i = 0; i < claims.size(); ++i) sums[i] += static_cast<double>(shares[i]);
    }
    for (size_t i = 0; i < claims.size(); ++i) {
      EXPECT_NEAR(sums[i] / kTurns, uncut[i], 5.0 / kTurns);
    }
  }
}

}  // namespace
}  // namespace aerie
