// Draft KV in a store that is too small for all sessions: who is evicted, what it is told, and that
// no page is ever lost.
#include <random>
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
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Pages of 4 rows, 12 of them; a context of 32 rows and a draft take 10.
FakeDraftModelOptions SmallStore() {
  FakeDraftModelOptions options;
  options.kv_store.num_pages = 12;
  return options;
}
EngineOptions SmallContext() {
  EngineOptions options;
  options.max_context = 32;
  options.max_k = 8;
  return options;
}

std::vector<int32_t> Tokens(int count, int first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) tokens[i] = (first + i) % 101;
  return tokens;
}

DraftTree Alone(const std::vector<int32_t>& tokens, int32_t k, uint64_t variant = 0) {
  return DraftAlone(
      tokens, MakeRows(FittingManifest(), 0, static_cast<int64_t>(tokens.size()), variant).view, k);
}

class DraftMemoryTest : public ::testing::Test {
 protected:
  DraftMemoryTest() : driver_(SmallContext(), SmallStore()) {}

  CoreDriver driver_;
};

TEST_F(DraftMemoryTest, TellsHowManyPagesAreInUse) {
  const std::string id = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(id, 0, Tokens(9), 8)), IsOk());
  ASSERT_THAT(driver_.RunClose(id), IsOk());
  const auto usages = driver_.observer.kv_usages();
  ASSERT_GE(usages.size(), 3u);
  EXPECT_EQ(usages[0], (KvUsage{12, 4, 0})) << "9 rows and 7 guesses, put by when it began";
  EXPECT_EQ(usages[usages.size() - 2], (KvUsage{12, 3, 0})) << "9 rows";
  EXPECT_EQ(usages.back(), (KvUsage{12, 0, 0}));
}

TEST_F(DraftMemoryTest, EvictsTheSessionThatHasBeenIdleLongest) {
  const std::string a = driver_.OpenSession();
  const std::string b = driver_.OpenSession();
  const std::string c = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(a, 0, Tokens(16), 1)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(b, 0, Tokens(16), 1)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(a, 16, Tokens(1), 1)), IsOk());
  const auto result = driver_.Run(MakeDraftCall(c, 0, Tokens(20), 1));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone(Tokens(20), 1));
  EXPECT_THAT(driver_.observer.evicted(), ElementsAre(16));
  EXPECT_THAT(driver_.Run(MakeDraftCall(a, 17, Tokens(1), 1)), IsOk()) << "it was used lately";

  const auto refused = driver_.Run(MakeDraftCall(b, 16, Tokens(1), 1));
  EXPECT_THAT(refused, Refuses(StatusCode::kFailedPrecondition, kReasonEvicted));
  EXPECT_EQ(DetailOf(refused.status()).resend_from, 0);
  EXPECT_THAT(driver_.observer.rejected(), IsEmpty());
}

TEST_F(DraftMemoryTest, GoesOnWithASessionWhoseRowsAreSentAgain) {
  const std::string a = driver_.OpenSession();
  const auto drafted = driver_.Run(MakeDraftCall(a, 0, Tokens(20), 3));
  ASSERT_THAT(drafted, IsOk());
  const std::string b = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(b, 0, Tokens(30), 0)), IsOk());
  ASSERT_THAT(driver_.observer.evicted(), ElementsAre(20));

  std::vector<int32_t> tokens = Tokens(20);
  tokens.push_back(drafted->tree.tokens[0]);
  tokens.push_back(99);
  // The new tokens alone tell what became of the proposal, but their rows are not enough.
  EXPECT_THAT(driver_.Run(MakeDraftCall(a, 20, {tokens[20], 99}, 3)),
              Refuses(StatusCode::kFailedPrecondition, kReasonEvicted));
  EXPECT_THAT(driver_.Run(MakeDraftCall(a, 5, Tokens(15, 5), 3)),
              Refuses(StatusCode::kFailedPrecondition, kReasonEvicted));
  const auto again = driver_.Run(MakeDraftCall(a, 0, tokens, 3));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone(tokens, 3));
  EXPECT_EQ(again->accepted, 1) << "the proposal from before the eviction is judged";
  EXPECT_EQ(again->length, 22);
}

TEST_F(DraftMemoryTest, JudgesTheLastProposalOfAnEvictedSessionThatCloses) {
  const std::string a = driver_.OpenSession();
  const auto drafted = driver_.Run(MakeDraftCall(a, 0, Tokens(20), 3));
  ASSERT_THAT(drafted, IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(driver_.OpenSession(), 0, Tokens(30), 0)), IsOk());
  ASSERT_THAT(driver_.observer.evicted(), ElementsAre(20));
  const auto record = driver_.RunClose(a, {drafted->tree.tokens[0], 99});
  ASSERT_THAT(record, IsOk());
  EXPECT_THAT(record->acceptance_histogram, ElementsAre(0, 1));
}

TEST_F(DraftMemoryTest, AnswersARepeatedNumberOfAnEvictedSession) {
  const std::string a = driver_.OpenSession();
  DraftCall call = MakeDraftCall(a, 0, Tokens(20), 3);
  call.seq = 4;
  const auto first = driver_.Run(call);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(driver_.OpenSession(), 0, Tokens(30), 0)), IsOk());
  ASSERT_THAT(driver_.observer.evicted(), ElementsAre(20));
  EXPECT_EQ(driver_.Run(call)->tree, first->tree);
}

TEST_F(DraftMemoryTest, RefusesACallForWhichBusySessionsLeaveNoRoomAndTouchesNobody) {
  const std::string a = driver_.OpenSession();
  const std::string b = driver_.OpenSession();
  const std::string idle = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(b, 0, Tokens(8, 50), 0)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(idle, 0, Tokens(4), 0)), IsOk());
  const auto first = driver_.Draft(MakeDraftCall(a, 0, Tokens(30), 1));
  DraftCall call = MakeDraftCall(b, 8, Tokens(12, 58), 3);
  const auto second = driver_.Draft(call);
  driver_.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(second->value(), Refuses(StatusCode::kResourceExhausted, kReasonKvMemory));
  EXPECT_GT(DetailOf(second->value().status()).retry_after, absl::ZeroDuration());
  EXPECT_EQ(DetailOf(second->value().status()).resend_from, std::nullopt);
  EXPECT_THAT(driver_.observer.rejected(), ElementsAre(RejectReason::kKvMemory));
  EXPECT_EQ(driver_.core.queued() + driver_.core.in_flight(), 0);
  EXPECT_THAT(driver_.observer.evicted(), IsEmpty()) << "nobody is evicted in vain";
  // By now the first one is idle, and the session goes on from where it stood.
  const auto again = driver_.Run(call);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone(Tokens(20, 50), 3));
}

TEST_F(DraftMemoryTest, NeverEvictsASessionWithACallThatWaitsOrRuns) {
  EngineOptions options = SmallContext();
  options.max_sessions_per_pass = 1;
  CoreDriver driver(options, SmallStore());
  const std::string a = driver.OpenSession();
  const std::string b = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(b, 0, Tokens(20), 0)), IsOk());
  const auto first = driver.Draft(MakeDraftCall(a, 0, Tokens(30), 1));
  const auto second = driver.Draft(MakeDraftCall(b, 20, Tokens(1), 1));
  driver.RunAll();
  EXPECT_THAT(first->value(), Refuses(StatusCode::kResourceExhausted, kReasonKvMemory));
  EXPECT_THAT(second->value(), IsOk());
  EXPECT_THAT(driver.observer.evicted(), IsEmpty());
}

TEST_F(DraftMemoryTest, PutsAllRowsOfAPromptByBeforeItsFirstPass) {
  EngineOptions options = SmallContext();
  options.max_rows_per_pass = 2;
  CoreDriver driver(options, SmallStore());
  const auto first = driver.Draft(MakeDraftCall(driver.OpenSession(), 0, Tokens(28), 1));
  driver.Pass();
  const auto second = driver.Draft(MakeDraftCall(driver.OpenSession(), 0, Tokens(24), 1));
  driver.RunAll();
  ASSERT_THAT(first->value(), IsOk()) << "two prompts must not stop each other half-way";
  EXPECT_EQ(first->value()->tree, Alone(Tokens(28), 1));
  EXPECT_THAT(second->value(), StatusIs(StatusCode::kResourceExhausted));
}

TEST_F(DraftMemoryTest, KeepsASessionPastTheContextLimitPastItWhenItIsEvicted) {
  const std::string a = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(a, 0, Tokens(30), 0)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(a, 30, Tokens(5), 2)), IsOk());
  ASSERT_THAT(driver_.Run(MakeDraftCall(driver_.OpenSession(), 0, Tokens(30), 0)), IsOk());
  ASSERT_THAT(driver_.observer.evicted(), ElementsAre(30));
  const auto further = driver_.Run(MakeDraftCall(a, 35, Tokens(1), 2));
  ASSERT_THAT(further, IsOk()) << "it needs none of the rows that it lost";
  EXPECT_EQ(further->no_draft_reason, NoDraftReason::kContextLimit);
  EXPECT_THAT(driver_.Run(MakeDraftCall(a, 20, Tokens(1), 2)),
              Refuses(StatusCode::kFailedPrecondition, kReasonEvicted))
      << "but going back it does";
}

TEST_F(DraftMemoryTest, GivesAStatelessCallTheRoomOfIdleSessions) {
  const std::string a = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(a, 0, Tokens(30), 0)), IsOk());
  DraftCall call = MakeDraftCall("", 0, Tokens(30), 2);
  call.sequence = FittingManifest();
  const auto result = driver_.Run(std::move(call));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone(Tokens(30), 2));
  EXPECT_EQ(driver_.core.kv_usage().pages_used, 0);
}

// Opens, drafts, forks, fails, evicts and closes without end: the books must come out even.
TEST(DraftMemoryCycleTest, LosesNoPageOverAHundredThousandSessions) {
  EngineOptions options = SmallContext();
  options.max_sessions = 12;
  CoreDriver driver(options, SmallStore());
  std::mt19937_64 random(3);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<std::string> ids;
  int opened = 0, forked = 0;
  std::vector<int> outcomes(20, 0);
  while (opened < 100000) {
    SessionOptions session;
    if (!ids.empty() && draw(0, 3) == 0) {
      session.fork_of = ids[draw(0, static_cast<int>(ids.size()) - 1)];
      session.fork_length = draw(0, 10);
    }
    if (draw(0, 5) == 0) session.tree = TreeShape{3, 2, 6};
    const auto open = driver.Open(FittingManifest(), session);
    if (open.ok()) {
      ++opened;
      forked += session.fork_of.empty() ? 0 : 1;
      ids.push_back(open->session_id);
      if (draw(0, 40) == 0) driver.model.FailNextPass(absl::InternalError("out of order"));
      const auto reply =
          driver.Draft(MakeDraftCall(ids.back(), open->length, Tokens(draw(1, 12)), draw(0, 4)));
      driver.Pass();
      if (draw(0, 1) == 0) driver.RunAll();
      if (reply->here()) ++outcomes[static_cast<size_t>(reply->value().status().code())];
    }
    while (ids.size() > 4 || (!ids.empty() && draw(0, 2) == 0)) {
      const auto which = draw(0, static_cast<int>(ids.size()) - 1);
      driver.Close(ids[which], {},
                   draw(0, 1) == 0 ? SessionEnd::kClosed : SessionEnd::kStreamClosed);
      ids.erase(ids.begin() + which);
    }
    if (opened % 1000 == 0) driver.RunAll();
  }
  driver.RunAll();
  for (const std::string& id : ids) EXPECT_THAT(driver.RunClose(id), IsOk());
  EXPECT_EQ(driver.core.kv_usage(), (KvUsage{12, 0, 0}));
  EXPECT_EQ(driver.observer.kv_usages().back(), (KvUsage{12, 0, 0}));
  EXPECT_EQ(driver.model.open_slots(), 0);
  EXPECT_GT(forked, 1000);
  EXPECT_GT(driver.observer.evicted().size(), 1000u);
  EXPECT_GT(driver.model.pages_copied(), 1000);
  EXPECT_GT(outcomes[static_cast<size_t>(StatusCode::kOk)], 50000);
  EXPECT_GT(outcomes[static_cast<size_t>(StatusCode::kInternal)], 500);
}

}  // namespace
}  // namespace aerie
