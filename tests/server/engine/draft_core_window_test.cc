// Drafting with a window: what is forgotten, what is not, and how far back a session may go.
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/kv_limits.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/reference_draft.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

constexpr VisibleRows kVisible = {.start = 0, .sink = 2, .window = 9};

EngineOptions Windowed() {
  EngineOptions options;
  options.max_k = 3;
  options.max_rows_per_pass = 8;
  options.draft_window = 9;
  options.draft_sink = 2;
  return options;
}

// Just enough pages for what one session may hold at a time.
FakeDraftModelOptions TightStore() {
  FakeDraftModelOptions model;
  model.kv_store.num_pages = static_cast<int32_t>(MostPagesOfSession(Windowed(), 4, 2));
  return model;
}

std::vector<int32_t> Tokens(int count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) tokens[i] = i * 7 % 101;
  return tokens;
}

DraftTree Alone(const std::vector<int32_t>& tokens, int32_t k, VisibleRows visible = kVisible) {
  const OwnedRows rows =
      MakeRows(FittingManifest(), visible.start, static_cast<int64_t>(tokens.size()));
  return ReferenceDraft({.tokens = tokens, .rows = rows.view, .visible = visible}, {}, k);
}

TEST(DraftWindowTest, DraftsFromTheWindowAndTheSink) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  std::vector<int32_t> tokens = Tokens(30);
  const auto first = driver.Run(MakeDraftCall(id, 0, tokens, 3));
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->tree, Alone(tokens, 3));
  EXPECT_NE(first->tree, Alone(tokens, 3, {})) << "a full look back drafts otherwise";
  for (int round = 0; round < 20; ++round) {
    tokens.push_back(round);
    const auto next = driver.Run(MakeDraftCall(id, 30 + round, {round}, 3));
    ASSERT_THAT(next, IsOk());
    ASSERT_EQ(next->tree, Alone(tokens, 3)) << round;
  }
}

TEST(DraftWindowTest, HoldsNoMoreThanItNeedsHoweverLongTheSequence) {
  CoreDriver driver(Windowed(), TightStore());
  const std::string id = driver.OpenSession();
  const std::vector<int32_t> tokens = Tokens(2000);
  const auto prompt = driver.Run(MakeDraftCall(id, 0, tokens, 3));
  ASSERT_THAT(prompt, IsOk());
  EXPECT_EQ(prompt->tree, Alone(tokens, 3));
  // The sink's page, and pages with the rows that are seen by row 1996 or later.
  EXPECT_LE(driver.core.kv_usage().pages_used, 1 + 5);
  EXPECT_THAT(driver.observer.evicted(), ::testing::IsEmpty());
}

TEST(DraftWindowTest, GoesBackAsFarAsARoundCanCommit) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  std::vector<int32_t> tokens = Tokens(60);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, tokens, 0)), IsOk());
  // max_k + 1 rows: a whole proposal and a bonus.
  tokens.resize(56);
  tokens.push_back(5);
  const auto result = driver.Run(MakeDraftCall(id, 56, {5}, 3));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone(tokens, 3));
}

TEST(DraftWindowTest, TellsWhereToResendFromWhenItCannotGoBackThatFar) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  std::vector<int32_t> tokens = Tokens(60);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, tokens, 0)), IsOk());
  const auto refused = driver.Run(MakeDraftCall(id, 40, {5}, 3));
  EXPECT_THAT(refused, Refuses(StatusCode::kFailedPrecondition, kReasonEvicted));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("goes back from row 60 to row 40"));
  ASSERT_EQ(DetailOf(refused.status()).resend_from, 4) << "the sink's page is there";
  // The refusal changed nothing.
  const auto next = driver.Run(MakeDraftCall(id, 60, {9}, 3));
  ASSERT_THAT(next, IsOk());
  std::vector<int32_t> longer = tokens;
  longer.push_back(9);
  EXPECT_EQ(next->tree, Alone(longer, 3));
  // From the row that it named on it goes.
  tokens.resize(40);
  tokens.push_back(5);
  const auto again =
      driver.Run(MakeDraftCall(id, 4, std::vector<int32_t>(tokens.begin() + 4, tokens.end()), 3));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone(tokens, 3));
}

TEST(DraftWindowTest, ResumesFromTheSinkWhenACallFailsThatHadLeftItsBeginningBehind) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  const std::vector<int32_t> tokens = Tokens(80);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, Tokens(30), 0)), IsOk());
  const auto call = MakeDraftCall(id, 30, {tokens.begin() + 30, tokens.end()}, 2);
  const auto failed = driver.Draft(call);
  for (int pass = 0; pass < 5; ++pass) driver.Pass();
  driver.model.FailNextPass(absl::InternalError("out of order"));
  driver.RunAll();
  EXPECT_THAT(failed->value(), Refuses(StatusCode::kInternal, kReasonPassFailed));
  ASSERT_EQ(DetailOf(failed->value().status()).resend_from, 4);
  EXPECT_THAT(driver.Run(call), Refuses(StatusCode::kFailedPrecondition, kReasonBaseLengthAhead));
  const auto again = driver.Run(MakeDraftCall(id, 4, {tokens.begin() + 4, tokens.end()}, 2));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone(tokens, 2));
}

TEST(DraftWindowTest, ResumesAShortCallThatFailedFromItsOwnFirstRow) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, Tokens(60), 0)), IsOk());
  const auto failed = driver.Draft(MakeDraftCall(id, 60, {1, 2, 3, 4}, 3));
  driver.Pass();
  driver.model.FailNextPass(absl::InternalError("out of order"));
  driver.RunAll();
  ASSERT_EQ(DetailOf(failed->value().status()).resend_from, 60);
  const auto again = driver.Run(MakeDraftCall(id, 60, {1, 2, 3, 4}, 3));
  ASSERT_THAT(again, IsOk());
  std::vector<int32_t> tokens = Tokens(60);
  tokens.insert(tokens.end(), {1, 2, 3, 4});
  EXPECT_EQ(again->tree, Alone(tokens, 3));
}

TEST(DraftWindowTest, ForksWhereItsRowsAreStillSeen) {
  CoreDriver driver(Windowed());
  const std::string id = driver.OpenSession();
  std::vector<int32_t> tokens = Tokens(60);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, tokens, 0)), IsOk());
  const auto refused = driver.Open(FittingManifest(), {.fork_of = id, .fork_length = 30});
  EXPECT_THAT(refused, Refuses(StatusCode::kFailedPrecondition, kReasonForkInvalid));
  EXPECT_EQ(DetailOf(refused.status()).resend_from, 4);
  const auto fork = driver.Open(FittingManifest(), {.fork_of = id, .fork_length = 58});
  ASSERT_THAT(fork, IsOk());
  tokens.resize(58);
  for (int round = 0; round < 12; ++round) {
    tokens.push_back(round);
    const auto result = driver.Run(MakeDraftCall(fork->session_id, 58 + round, {round}, 3));
    ASSERT_THAT(result, IsOk());
    ASSERT_EQ(result->tree, Alone(tokens, 3));
  }
  tokens = Tokens(60);
  tokens.push_back(3);
  const auto parent = driver.Run(MakeDraftCall(id, 60, {3}, 3));
  ASSERT_THAT(parent, IsOk());
  EXPECT_EQ(parent->tree, Alone(tokens, 3));
}

TEST(DraftWindowTest, KeepsTheSinkOfASessionThatStartsLate) {
  CoreDriver driver(Windowed(), TightStore());
  const std::string id = driver.OpenSession(SessionOptions{.start = 1001});
  const std::vector<int32_t> tokens = Tokens(300);
  const auto result = driver.Run(MakeDraftCall(id, 1001, tokens, 3));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone(tokens, 3, {.start = 1001, .sink = 2, .window = 9}));
}

}  // namespace
}  // namespace aerie
