#include "server/engine/adaptive_k.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace aerie {
namespace {

// One round of a drafter and a target whose times do not scatter: 2 ms for the extend rows, 1 ms a
// step, 20 ms for the target and `token_cost` more for every draft token.
class SteadySession {
 public:
  explicit SteadySession(double token_cost) : token_cost_(token_cost) {}

  double Milliseconds(int32_t k) const { return 2 + std::max(k - 1, 0) + 20 + token_cost_ * k; }

  // Every draft is kept to the depth that `keeps` says, as far as it is that long.
  KChoice Round(int32_t max_k, int32_t keeps) {
    const KChoice choice = adaptive_.Choose(max_k);
    adaptive_.ObserveDraft(choice.k, absl::Milliseconds(2),
                           absl::Milliseconds(std::max(choice.k - 1, 0)));
    adaptive_.ObserveVerify(absl::Milliseconds(20 + token_cost_ * choice.k), choice.k);
    if (choice.k > 0) adaptive_.ObserveProposal(choice.k, std::min(choice.k, keeps));
    return choice;
  }

  // The choices of `rounds` rounds that were made for what they promise.
  std::vector<int32_t> Choices(int rounds, int32_t max_k, int32_t keeps) {
    std::vector<int32_t> choices;
    for (int round = 0; round < rounds; ++round) {
      const KChoice choice = Round(max_k, keeps);
      if (!choice.exploring) choices.push_back(choice.k);
    }
    return choices;
  }

  void set_token_cost(double milliseconds) { token_cost_ = milliseconds; }

 private:
  AdaptiveK adaptive_;
  double token_cost_;
};

TEST(AdaptiveKTest, WithoutAVerificationItChoosesTheLimitAndSaysWhy) {
  AdaptiveK adaptive;
  for (int round = 0; round < 50; ++round) {
    const KChoice choice = adaptive.Choose(7);
    EXPECT_EQ(choice.k, 7);
    EXPECT_TRUE(choice.exploring);
    EXPECT_EQ(choice.verify_time, absl::ZeroDuration());
    adaptive.ObserveDraft(7, absl::Milliseconds(2), absl::Milliseconds(6));
    adaptive.ObserveProposal(7, 0);
  }
}

TEST(AdaptiveKTest, LooksAtBothEndsOfTheVerificationsCostFirst) {
  AdaptiveK adaptive;
  adaptive.ObserveDraft(7, absl::Milliseconds(2), absl::Milliseconds(6));
  adaptive.ObserveVerify(absl::Milliseconds(30), 7);
  EXPECT_EQ(adaptive.Choose(7).k, 0);
  EXPECT_TRUE(adaptive.Choose(7).exploring);

  AdaptiveK other;
  other.ObserveVerify(absl::Milliseconds(30), 0);
  EXPECT_EQ(other.Choose(7).k, 7);
}

TEST(AdaptiveKTest, DraftsNothingWhenNothingIsKept) {
  SteadySession session(5);
  session.Choices(100, 8, 0);
  for (const int32_t k : session.Choices(500, 8, 0)) EXPECT_EQ(k, 0);
}

TEST(AdaptiveKTest, DraftsAllWhenAllIsKeptAndVerifyingCostsLittle) {
  SteadySession session(0.1);
  session.Choices(100, 8, 8);
  for (const int32_t k : session.Choices(500, 8, 8)) EXPECT_EQ(k, 8);
}

TEST(AdaptiveKTest, StopsWhereDraftsStopToBeKept) {
  SteadySession session(1);
  session.Choices(200, 8, 3);
  for (const int32_t k : session.Choices(500, 8, 3)) EXPECT_EQ(k, 3);
}

TEST(AdaptiveKTest, TheCallsLimitHolds) {
  SteadySession session(0.1);
  for (int round = 0; round < 300; ++round) {
    const int32_t max_k = round % 12;
    const KChoice choice = session.Round(max_k, 8);
    EXPECT_TRUE(choice.k >= 0 && choice.k <= max_k) << choice.k << " of " << max_k;
  }
}

TEST(AdaptiveKTest, SaysWhatItExpects) {
  SteadySession session(1);
  session.Choices(400, 8, 3);
  KChoice choice = session.Round(8, 3);
  while (choice.exploring) choice = session.Round(8, 3);
  EXPECT_EQ(choice.k, 3);
  EXPECT_NEAR(choice.expected_tokens, 4, 0.1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(choice.draft_time), 4, 1e-6);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(choice.verify_time), 23, 0.5);
}

TEST(AdaptiveKTest, EqualObservationsGiveEqualChoices) {
  SteadySession a(2), b(2);
  for (int round = 0; round < 1000; ++round) {
    const int32_t keeps = round * round % 7;
    EXPECT_EQ(a.Round(8, keeps).k, b.Round(8, keeps).k);
  }
}

TEST(AdaptiveKTest, ExploringTakesASmallPartOfTheTime) {
  SteadySession session(5);
  session.Choices(100, 16, 2);
  const double best_rate = 3 / session.Milliseconds(2);
  double lost = 0, total = 0;
  int explored = 0;
  for (int round = 0; round < 5000; ++round) {
    const KChoice choice = session.Round(16, 2);
    const double time = session.Milliseconds(choice.k);
    total += time;
    if (!choice.exploring) continue;
    ++explored;
    lost += time - (1 + std::min(choice.k, 2)) / best_rate;
  }
  EXPECT_GT(explored, 50);
  EXPECT_LT(lost, 0.02 * total);
}

TEST(AdaptiveKTest, LearnsAgainWhatItLeftOut) {
  SteadySession session(1);
  session.Choices(1000, 8, 0);
  EXPECT_EQ(session.Choices(50, 8, 0).back(), 0);
  session.Choices(500, 8, 8);  // the text became easy
  EXPECT_GE(session.Choices(50, 8, 8).back(), 7);
  session.set_token_cost(200);  // the target became busy
  session.Choices(300, 8, 8);
  EXPECT_EQ(session.Choices(50, 8, 8).back(), 0);
  session.set_token_cost(0.1);  // and idle
  session.Choices(1000, 8, 8);
  EXPECT_GE(session.Choices(50, 8, 8).back(), 7);
}

TEST(AdaptiveKTest, AClockThatStandsStillIsNoReasonToFail) {
  AdaptiveK adaptive;
  for (int round = 0; round < 200; ++round) {
    const KChoice choice = adaptive.Choose(4);
    EXPECT_TRUE(std::isfinite(choice.expected_tokens));
    adaptive.ObserveDraft(choice.k, absl::ZeroDuration(), absl::ZeroDuration());
    adaptive.ObserveVerify(absl::ZeroDuration(), choice.k);
    if (choice.k > 0) adaptive.ObserveProposal(choice.k, 1);
  }
}

}  // namespace
}  // namespace aerie
