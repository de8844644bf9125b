// What holds for every plan, and over many passes: tried on random rounds of random clients.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/batcher.h"

namespace aerie {
namespace {

int32_t Number(std::mt19937* random, int32_t least, int32_t most) {
  return least + static_cast<int32_t>((*random)() % static_cast<uint32_t>(most - least + 1));
}

struct RandomPass {
  PassLimits limits;
  std::vector<PassCandidate> candidates;
};

RandomPass MakePass(std::mt19937* random) {
  RandomPass pass;
  pass.limits = {Number(random, 1, 40), Number(random, 1, 40), Number(random, 1, 12)};
  std::vector<int32_t> weights;
  for (int client = Number(random, 1, 5); client > 0; --client) {
    weights.push_back(Number(random, 0, 2) == 0 ? Number(random, 1, 1000) : Number(random, 1, 3));
  }
  for (int round = Number(random, 1, 16); round > 0; --round) {
    const int32_t client = Number(random, 0, static_cast<int32_t>(weights.size()) - 1);
    pass.candidates.push_back({.extend_rows = Number(random, 0, 2) * Number(random, 0, 30),
                               .draft_rows = Number(random, 1, 12),
                               .client = 50 - client,
                               .weight = weights[static_cast<size_t>(client)]});
  }
  return pass;
}

struct Totals {
  int64_t extend_rows = 0, draft_rows = 0, levels = 0;
};

Totals AddUp(const RandomPass& pass, const std::vector<PassShare>& plan) {
  Totals totals;
  for (const PassShare& share : plan) {
    totals.extend_rows += share.rows;
    if (pass.candidates[share.candidate].extend_rows > 0) continue;
    totals.draft_rows += pass.candidates[share.candidate].draft_rows;
    ++totals.levels;
  }
  return totals;
}

class RandomPlansTest : public ::testing::Test {
 protected:
  // `check` gets a pass, its plan and its totals.
  template <typename Check>
  void ForManyPasses(Check check) {
    std::mt19937 random(20);
    for (int round = 0; round < 20000 && !HasFailure(); ++round) {
      const RandomPass pass = MakePass(&random);
      const std::vector<PassShare> plan = PlanPass(pass.candidates, pass.limits, random());
      check(pass, plan, AddUp(pass, plan));
      if (HasFailure()) ADD_FAILURE() << "in random pass " << round;
    }
  }
};

TEST_F(RandomPlansTest, BudgetsAreKept) {
  ForManyPasses(
      [](const RandomPass& pass, const std::vector<PassShare>& plan, const Totals& totals) {
        EXPECT_LE(totals.extend_rows, pass.limits.max_rows);
        EXPECT_TRUE(totals.draft_rows <= pass.limits.max_draft_rows || totals.levels == 1);
        EXPECT_LE(plan.size(), static_cast<size_t>(pass.limits.max_sessions));
      });
}

TEST_F(RandomPlansTest, ThePlanIsInOrderAndEveryRoundOfItRuns) {
  ForManyPasses([](const RandomPass& pass, const std::vector<PassShare>& plan, const Totals&) {
    for (size_t i = 0; i < plan.size(); ++i) {
      const int64_t rows_left = pass.candidates[plan[i].candidate].extend_rows;
      EXPECT_TRUE(i == 0 || plan[i - 1].candidate < plan[i].candidate);
      EXPECT_LE(plan[i].rows, rows_left);
      EXPECT_EQ(plan[i].rows > 0, rows_left > 0);
    }
  });
}

TEST_F(RandomPlansTest, TheOldestRoundIsAlwaysIn) {
  ForManyPasses([](const RandomPass&, const std::vector<PassShare>& plan, const Totals&) {
    ASSERT_FALSE(plan.empty());
    EXPECT_EQ(plan.front().candidate, 0u);
  });
}

// Whoever is left out, or gets fewer rows than it wants, is so because something is used up.
TEST_F(RandomPlansTest, NothingIsLeftThatSomebodyCouldUse) {
  ForManyPasses(
      [](const RandomPass& pass, const std::vector<PassShare>& plan, const Totals& totals) {
        const bool places_left = plan.size() < static_cast<size_t>(pass.limits.max_sessions);
        const bool rows_left = totals.extend_rows < pass.limits.max_rows;
        std::vector<int64_t> rows(pass.candidates.size(), -1);
        for (const PassShare& share : plan) rows[share.candidate] = share.rows;
        for (size_t i = 0; i < rows.size(); ++i) {
          const PassCandidate& candidate = pass.candidates[i];
          if (rows[i] >= 0) {
            EXPECT_TRUE(rows[i] == candidate.extend_rows || !rows_left);
          } else if (candidate.extend_rows > 0) {
            EXPECT_FALSE(places_left && rows_left);
          } else {
            EXPECT_FALSE(places_left &&
                         totals.draft_rows + candidate.draft_rows <= pass.limits.max_draft_rows);
          }
        }
      });
}

TEST_F(RandomPlansTest, TheNamesOfTheClientsDoNotMatter) {
  std::mt19937 random(21);
  for (int round = 0; round < 5000; ++round) {
    RandomPass pass = MakePass(&random);
    const auto plan = PlanPass(pass.candidates, pass.limits, 5);
    for (PassCandidate& candidate : pass.candidates) candidate.client = -7 * candidate.client;
    ASSERT_EQ(PlanPass(pass.candidates, pass.limits, 5), plan);
  }
}

// Clients that want and weigh the same get the same, whoever came first: within the one row that
// cannot be cut.
TEST(BatcherFairnessTest, EqualClientsMayTradePlacesInTheOrderOfArrival) {
  std::mt19937 random(22);
  for (int round = 0; round < 2000; ++round) {
    std::vector<PassCandidate> candidates;
    for (int client = 0; client < 4; ++client) {
      for (const int64_t rows : {30, 8, 3}) {
        candidates.push_back({.extend_rows = rows, .client = client});
      }
    }
    std::shuffle(candidates.begin(), candidates.end(), random);
    const int32_t max_rows = Number(&random, 12, 150);
    std::map<int32_t, int64_t> rows;
    for (const PassShare& share : PlanPass(candidates, {max_rows, 64, 64}, random())) {
      rows[candidates[share.candidate].client] += share.rows;
    }
    ASSERT_EQ(rows.size(), 4u);
    const auto [least, most] = std::minmax_element(
        rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_LE(most->second - least->second, 1);
  }
}

// Prompts without end, few rows: no pass can be exact, all of them together are.
TEST(BatcherFairnessTest, WeightsHoldOverManyPasses) {
  const std::vector<int32_t> weights = {5, 1, 2, 9, 1};
  const std::vector<int> prompts = {1, 6, 2, 1, 3};
  constexpr int32_t kRows = 7;
  constexpr int kPasses = 5000;
  std::vector<PassCandidate> candidates;
  for (int32_t client = 0; client < 5; ++client) {
    for (int prompt = 0; prompt < prompts[static_cast<size_t>(client)]; ++prompt) {
      candidates.push_back({.extend_rows = 1000000,
                            .client = client,
                            .weight = weights[static_cast<size_t>(client)]});
    }
  }
  std::vector<int64_t> rows(5);
  for (uint64_t pass = 0; pass < kPasses; ++pass) {
    for (const PassShare& share : PlanPass(candidates, {kRows, 64, 64}, pass)) {
      rows[static_cast<size_t>(candidates[share.candidate].client)] += share.rows;
    }
  }
  for (size_t client = 0; client < 5; ++client) {
    EXPECT_NEAR(static_cast<double>(rows[client]), kPasses * kRows * weights[client] / 18., 5);
  }
}

// A crowd of heavy clients keeps sending short calls. The prompt of the lightest one, which is
// never alone, gets through all the same: at the latest it is the oldest.
TEST(BatcherFairnessTest, StarvesNobodyWhateverTheWeights) {
  const PassLimits limits{.max_rows = 4, .max_draft_rows = 3, .max_sessions = 3};
  std::mt19937 random(23);
  std::vector<PassCandidate> rounds;
  std::vector<int> waited;
  const auto add = [&](PassCandidate round) {
    rounds.push_back(round);
    waited.push_back(0);
  };
  int longest = 0;
  int finished_prompts = 0;
  for (uint64_t pass = 0; pass < 20000; ++pass) {
    if (pass % 97 == 0) add({.extend_rows = 20, .client = 0, .weight = 1});
    while (rounds.size() < 9) {
      add({.extend_rows = Number(&random, 1, 3), .client = Number(&random, 1, 2), .weight = 1000});
    }
    std::vector<size_t> done;
    for (const PassShare& share : PlanPass(rounds, limits, pass)) {
      PassCandidate& round = rounds[share.candidate];
      // After its rows a round drafts one level.
      if (round.extend_rows == 0) done.push_back(share.candidate);
      round.extend_rows -= share.rows;
      round.draft_rows = Number(&random, 1, 4);
    }
    for (int& passes : waited) longest = std::max(longest, ++passes);
    for (auto i = done.rbegin(); i != done.rend(); ++i) {
      finished_prompts += rounds[*i].client == 0 ? 1 : 0;
      rounds.erase(rounds.begin() + static_cast<int64_t>(*i));
      waited.erase(waited.begin() + static_cast<int64_t>(*i));
    }
  }
  EXPECT_LE(longest, 60);
  EXPECT_GE(finished_prompts, 20000 / 97 - 1);
}

}  // namespace
}  // namespace aerie
