// A session that lets the engine choose k: what it feeds the choice, and what it tells of it.
#include <algorithm>
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;

// A worker whose target keeps `kept` tokens of every proposal, over a target whose verification
// takes `base` and `each` a draft token.
struct Load {
  int32_t kept = 0;
  absl::Duration base, each;
  absl::Duration pass = absl::Milliseconds(1);
};

// Runs rounds of one session and gives the last choices of k.
std::vector<KChoice> RunRounds(CoreDriver* driver, const std::string& id, int rounds,
                               const Load& load) {
  std::vector<KChoice> choices;
  std::vector<int32_t> tokens = {1, 2, 3};
  int64_t length = 0;
  std::optional<int32_t> verified;
  for (int round = 0; round < rounds; ++round) {
    DraftCall call = MakeDraftCall(id, length, tokens, 8);
    if (verified.has_value()) {
      call.verify_time = load.base + *verified * load.each;
      call.verify_tokens = *verified;
    }
    const auto reply = driver->Draft(std::move(call));
    while (driver->Pass(load.pass)) {
    }
    const auto result = reply->value();
    EXPECT_THAT(result, IsOk());
    if (!result.ok() || !result->k_choice.has_value()) break;
    choices.push_back(*result->k_choice);
    EXPECT_EQ(result->tree.size(), result->k_choice->k);
    EXPECT_EQ(result->no_draft_reason,
              result->k_choice->k < 8 ? NoDraftReason::kNotWorthwhile : NoDraftReason::kNone);
    const RoundRecord record = driver->observer.last_round();
    EXPECT_EQ(record.skipped.has_value(), result->k_choice->k < 8);
    length = result->length;
    verified = result->tree.size();
    const auto kept = std::min(result->tree.size(), load.kept);
    tokens.assign(result->tree.tokens.begin(), result->tree.tokens.begin() + kept);
    tokens.push_back(100);
  }
  return choices;
}

int32_t UsualK(std::vector<KChoice> choices) {
  std::erase_if(choices, [](const KChoice& choice) { return choice.exploring; });
  EXPECT_FALSE(choices.empty());
  return choices.empty() ? -1 : choices.back().k;
}

TEST(AdaptiveRoundsTest, DraftsAsManyTokensAsTheTargetKeeps) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.adaptive_k = true});
  const Load load{.kept = 3, .base = absl::Milliseconds(30), .each = absl::Milliseconds(1)};
  EXPECT_EQ(UsualK(RunRounds(&driver, id, 200, load)), 3);
}

TEST(AdaptiveRoundsTest, DraftsNothingWhenNothingIsKept) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.adaptive_k = true});
  const Load load{.kept = 0, .base = absl::Milliseconds(5), .each = absl::Milliseconds(1)};
  EXPECT_EQ(UsualK(RunRounds(&driver, id, 200, load)), 0);
  EXPECT_EQ(driver.observer.last_round().skipped, SkipReason::kNotWorthwhile);
}

TEST(AdaptiveRoundsTest, DraftsAllWithoutAReportedVerification) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.adaptive_k = true});
  const auto result = driver.Run(MakeDraftCall(id, 0, {1, 2}, 5));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree.size(), 5);
  ASSERT_TRUE(result->k_choice.has_value());
  EXPECT_EQ(result->k_choice->k, 5);
  EXPECT_TRUE(result->k_choice->exploring);
}

TEST(AdaptiveRoundsTest, ChoosesNothingWhereNothingWasLeftToIt) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.adaptive_k = true});
  const auto not_asked = driver.Run(MakeDraftCall(id, 0, {1, 2}, 0));
  EXPECT_EQ(not_asked->k_choice.has_value(), false);
  EXPECT_EQ(not_asked->no_draft_reason, NoDraftReason::kNotAsked);
  const auto plain = driver.Run(MakeDraftCall(driver.OpenSession(), 0, {1, 2}, 4));
  EXPECT_EQ(plain->k_choice.has_value(), false);
}

TEST(AdaptiveRoundsTest, RefusesAVerificationThatCannotBe) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.adaptive_k = true});
  const std::vector<std::pair<std::optional<absl::Duration>, int32_t>> costs = {
      {-absl::Seconds(1), 2},
      {absl::InfiniteDuration(), 2},
      {absl::Seconds(1), -1},
      {absl::Seconds(1), 17},
      {std::nullopt, 2}};
  for (const auto& [time, tokens] : costs) {
    DraftCall call = MakeDraftCall(id, 0, {1}, 2);
    call.verify_time = time;
    call.verify_tokens = tokens;
    EXPECT_THAT(driver.Run(std::move(call)),
                Refuses(StatusCode::kInvalidArgument, kReasonRequestInvalid));
  }
}

}  // namespace
}  // namespace aerie
