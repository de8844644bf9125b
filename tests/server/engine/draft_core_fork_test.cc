// Sessions that begin with rows of another one, or behind rows that nobody sends.
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/reference_draft.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

DraftTree Alone(const std::vector<int32_t>& tokens, int32_t k, int64_t start = 0) {
  const OwnedRows rows = MakeRows(FittingManifest(), start, static_cast<int64_t>(tokens.size()));
  return ReferenceDraft({.tokens = tokens, .rows = rows.view, .visible = {.start = start}}, {}, k);
}

class ForkTest : public ::testing::Test {
 protected:
  ForkTest() {
    parent_ = driver_.OpenSession();
    EXPECT_THAT(driver_.Run(MakeDraftCall(parent_, 0, {1, 2, 3, 4, 5, 6}, 3)), IsOk());
  }
  std::string Fork(int64_t length) {
    const auto opened =
        driver_.Open(FittingManifest(), {.fork_of = parent_, .fork_length = length});
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? opened->session_id : "";
  }

  CoreDriver driver_;
  std::string parent_;
};

TEST_F(ForkTest, BeginsWithRowsOfAnotherSessionInTheSamePages) {
  const auto opened = driver_.Open(FittingManifest(), {.fork_of = parent_, .fork_length = 5});
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->length, 5);
  EXPECT_EQ(driver_.core.kv_usage(), (KvUsage{4096, 2, 2}));
  EXPECT_EQ(driver_.observer.kv_usages().back().pages_shared, 2);
  const auto result = driver_.Run(MakeDraftCall(opened->session_id, 5, {50, 51}, 4));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3, 4, 5, 50, 51}, 4));
  EXPECT_EQ(driver_.core.kv_usage(), (KvUsage{4096, 3, 1})) << "only the page that was written";
}

TEST_F(ForkTest, LeavesTheForkedSessionAsItWas) {
  const std::string fork = Fork(6);
  ASSERT_THAT(driver_.Run(MakeDraftCall(fork, 6, {50}, 4)), IsOk());
  const auto parent = driver_.Run(MakeDraftCall(parent_, 6, {60}, 4));
  ASSERT_THAT(parent, IsOk());
  EXPECT_EQ(parent->tree, Alone({1, 2, 3, 4, 5, 6, 60}, 4));
  const auto again = driver_.Run(MakeDraftCall(fork, 7, {51}, 4));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone({1, 2, 3, 4, 5, 6, 50, 51}, 4));
}

TEST_F(ForkTest, OutlivesTheForkedSession) {
  const std::string fork = Fork(6);
  ASSERT_THAT(driver_.RunClose(parent_), IsOk());
  EXPECT_EQ(driver_.core.kv_usage(), (KvUsage{4096, 2, 0}));
  const auto result = driver_.Run(MakeDraftCall(fork, 6, {50}, 4));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3, 4, 5, 6, 50}, 4));
}

TEST_F(ForkTest, RollsBackIntoTheSharedRows) {
  const std::string fork = Fork(6);
  const auto result = driver_.Run(MakeDraftCall(fork, 2, {70, 71}, 4));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 70, 71}, 4));
  const auto parent = driver_.Run(MakeDraftCall(parent_, 6, {60}, 4));
  ASSERT_THAT(parent, IsOk());
  EXPECT_EQ(parent->tree, Alone({1, 2, 3, 4, 5, 6, 60}, 4));
}

TEST_F(ForkTest, CountsNoForkedRowAsCommittedAndJudgesNoProposalOfTheOther) {
  const std::string fork = Fork(6);
  const auto first = driver_.Run(MakeDraftCall(fork, 6, {50}, 2));
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->accepted, std::nullopt);
  const auto second = driver_.Run(MakeDraftCall(fork, 4, {5, 6, 50, 7}, 0));
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->accepted, 0);
  EXPECT_EQ(driver_.observer.last_round().committed_tokens, 1);
}

TEST_F(ForkTest, CountsRowsThatReplaceForkedOnesAsCommittedBefore) {
  const std::string fork = Fork(6);
  ASSERT_THAT(driver_.Run(MakeDraftCall(fork, 2, {70}, 2)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(fork, 3, {71}, 0)), IsOk());
  EXPECT_EQ(driver_.observer.last_round().committed_tokens, 0);
}

TEST_F(ForkTest, CanBeEmpty) {
  const auto result = driver_.Run(MakeDraftCall(Fork(0), 0, {50, 51}, 4));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({50, 51}, 4));
}

TEST_F(ForkTest, RefusesALengthThatTheSessionDoesNotHave) {
  const auto refused = driver_.Open(FittingManifest(), {.fork_of = parent_, .fork_length = 7});
  EXPECT_THAT(refused, Refuses(StatusCode::kInvalidArgument, kReasonForkInvalid));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("length 7; expected 0..6"));
}

TEST_F(ForkTest, RefusesASessionThatIsNotThere) {
  EXPECT_THAT(driver_.Open(FittingManifest(), {.fork_of = "nobody", .fork_length = 1}),
              Refuses(StatusCode::kNotFound, kReasonSessionUnknown));
}

TEST_F(ForkTest, RefusesASessionWithAnOpenCallUntilItIsAnswered) {
  const auto reply = driver_.Draft(MakeDraftCall(parent_, 6, {60}, 4));
  EXPECT_THAT(driver_.Open(FittingManifest(), {.fork_of = parent_, .fork_length = 6}),
              Refuses(StatusCode::kFailedPrecondition, kReasonForkInvalid));
  driver_.RunAll();
  EXPECT_THAT(reply->value(), IsOk());
  EXPECT_THAT(driver_.Open(FittingManifest(), {.fork_of = parent_, .fork_length = 7}), IsOk());
}

TEST(ForkEvictionTest, RefusesASessionWhoseRowsWereEvictedAndKeepsTheForksOwn) {
  EngineOptions options;
  options.max_context = 32;
  options.max_k = 4;
  FakeDraftModelOptions model;
  model.kv_store.num_pages = 9;
  CoreDriver driver(options, model);
  const std::string parent = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(parent, 0, {1, 2, 3, 4, 5, 6}, 0)), IsOk());
  const auto fork = driver.Open(FittingManifest(), {.fork_of = parent, .fork_length = 6});
  ASSERT_THAT(fork, IsOk());
  const auto busy = driver.Draft(MakeDraftCall(fork->session_id, 6, {7}, 2));
  const auto large =
      driver.Draft(MakeDraftCall(driver.OpenSession(), 0, std::vector<int32_t>(28, 8), 0));
  driver.RunAll();
  EXPECT_THAT(large->value(), IsOk());
  EXPECT_EQ(driver.observer.evicted().size(), 1u);
  ASSERT_THAT(busy->value(), IsOk());
  EXPECT_EQ(busy->value()->tree, Alone({1, 2, 3, 4, 5, 6, 7}, 2));
  EXPECT_THAT(driver.Open(FittingManifest(), {.fork_of = parent, .fork_length = 6}),
              Refuses(StatusCode::kFailedPrecondition, kReasonEvicted));
}

TEST(StartTest, CountsTheRowsThatAreNeverSentAndDraftsWithoutThem) {
  CoreDriver driver;
  const auto opened = driver.Open(FittingManifest(), {.start = 1001});
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->length, 1001);
  const auto first = driver.Run(MakeDraftCall(opened->session_id, 1001, {1, 2, 3}, 4));
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->length, 1004);
  EXPECT_EQ(first->tree, Alone({1, 2, 3}, 4, 1001));
  EXPECT_NE(first->tree, Alone({1, 2, 3}, 4)) << "positions count";
  EXPECT_EQ(driver.core.kv_usage().pages_used, 1) << "rows 1001..1003 of page 250";
  const auto second = driver.Run(MakeDraftCall(opened->session_id, 1002, {9, 9}, 4));
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->tree, Alone({1, 9, 9}, 4, 1001));
}

TEST(StartTest, RefusesRowsBeforeTheStartAndBehindAGap) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.start = 10});
  const auto below = driver.Run(MakeDraftCall(id, 9, {1}, 1));
  EXPECT_THAT(below, Refuses(StatusCode::kInvalidArgument, kReasonRequestInvalid));
  EXPECT_THAT(std::string(below.status().message()),
              HasSubstr("base_length is 9; expected 10..10"));
  const auto above = driver.Run(MakeDraftCall(id, 11, {1}, 1));
  EXPECT_THAT(above, Refuses(StatusCode::kFailedPrecondition, kReasonBaseLengthAhead));
  EXPECT_EQ(DetailOf(above.status()).resend_from, 10);
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 10, {1}, 1)), IsOk());
}

TEST(StartTest, CountsTowardsTheContextLimit) {
  EngineOptions options;
  options.max_context = 20;
  CoreDriver driver(options);
  const std::string id = driver.OpenSession(SessionOptions{.start = 18});
  EXPECT_EQ(driver.Run(MakeDraftCall(id, 18, {1, 2}, 1))->no_draft_reason, NoDraftReason::kNone);
  EXPECT_EQ(driver.Run(MakeDraftCall(id, 20, {3}, 1))->no_draft_reason,
            NoDraftReason::kContextLimit);
}

TEST(StartTest, IsInheritedByAFork) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(SessionOptions{.start = 10});
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 10, {1, 2, 3}, 0)), IsOk());
  EXPECT_THAT(driver.Open(FittingManifest(), {.fork_of = id, .fork_length = 9}),
              Refuses(StatusCode::kInvalidArgument, kReasonForkInvalid));
  const auto fork = driver.Open(FittingManifest(), {.fork_of = id, .fork_length = 12});
  ASSERT_THAT(fork, IsOk());
  const auto result = driver.Run(MakeDraftCall(fork->session_id, 12, {8}, 3));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 8}, 3, 10));
}

}  // namespace
}  // namespace aerie
