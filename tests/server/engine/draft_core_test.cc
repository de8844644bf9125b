// Drafting, call by call and pass by pass.
#include "server/engine/draft_core.h"

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
using ::testing::Pair;
using ::testing::SizeIs;

DraftTree Alone(const std::vector<int32_t>& tokens, int32_t k, uint64_t variant = 0) {
  const OwnedRows rows =
      MakeRows(FittingManifest(), 0, static_cast<int64_t>(tokens.size()), variant);
  return DraftAlone(tokens, rows.view, k);
}

TEST(DraftCoreTest, DraftsAChainFromTheLastRow) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto result = driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 4));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3}, 4));
  EXPECT_THAT(result->tree.parents, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(result->length, 3);
  EXPECT_EQ(result->accepted, std::nullopt);
  EXPECT_EQ(result->no_draft_reason, NoDraftReason::kNone);
  EXPECT_THAT(driver.model.passes(), SizeIs(4)) << "one extend and k - 1 draft steps";
}

TEST(DraftCoreTest, KeepsNoGuessInItsPages) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 5)), IsOk());
  // The guesses stood at rows 3..6; the target took another way.
  const auto result = driver.Run(MakeDraftCall(id, 3, {90, 91}, 5));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3, 90, 91}, 5));
}

TEST(DraftCoreTest, ReportsWhatTheTargetKept) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto first = driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 3));
  ASSERT_THAT(first, IsOk());
  DraftCall call = MakeDraftCall(id, 3, {first->tree.tokens[0], first->tree.tokens[1], 77}, 3);
  call.accepted = 1;  // the worker miscounted
  const auto second = driver.Run(std::move(call));
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->accepted, 2);
  const RoundRecord record = driver.observer.last_round();
  ASSERT_TRUE(record.judgement.has_value());
  EXPECT_EQ(record.judgement->proposed, 3);
  EXPECT_EQ(record.judgement->accepted, 2);
  EXPECT_EQ(record.judgement->worker_accepted, 1);
  EXPECT_EQ(record.committed_tokens, 3);
  const auto acceptance = driver.RunClose(id, {second->tree.tokens[0]});
  ASSERT_THAT(acceptance, IsOk());
  EXPECT_THAT(acceptance->acceptance_histogram, ElementsAre(0, 1, 1));
  EXPECT_EQ(acceptance->completion_tokens, 4);
}

TEST(DraftCoreTest, CommitsWithoutDraftingWhenKIsZero) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto prompt = driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 0));
  ASSERT_THAT(prompt, IsOk());
  EXPECT_TRUE(prompt->tree.empty());
  EXPECT_EQ(prompt->length, 3);
  EXPECT_EQ(prompt->no_draft_reason, NoDraftReason::kNotAsked);
  EXPECT_EQ(driver.observer.last_round().skipped, SkipReason::kNotAsked);
  EXPECT_EQ(driver.model.passes()[0][0].outputs, Outputs::kNone) << "nobody asked for logits";
  const auto result = driver.Run(MakeDraftCall(id, 3, {4}, 2));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3, 4}, 2));
}

TEST(DraftCoreTest, RollsBackToAnEarlierRow) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2, 3, 4, 5}, 3)), IsOk());
  DraftCall call = MakeDraftCall(id, 2, {80, 81}, 3);
  const auto result = driver.Run(std::move(call));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->length, 4);
  EXPECT_EQ(result->tree, Alone({1, 2, 80, 81}, 3));
  EXPECT_EQ(result->accepted, std::nullopt);
  EXPECT_EQ(driver.observer.last_round().unreported, UnreportedReason::kRollback);
}

TEST(DraftCoreTest, RollsBackWithoutRowsAndWithoutAPass) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 0)), IsOk());
  const auto passes = driver.model.passes().size();
  const auto shorter = driver.Run(MakeDraftCall(id, 1, {}, 0));
  ASSERT_THAT(shorter, IsOk());
  EXPECT_EQ(shorter->length, 1);
  EXPECT_EQ(driver.model.passes().size(), passes);
  const auto result = driver.Run(MakeDraftCall(id, 1, {9}, 2));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 9}, 2));
}

TEST(DraftCoreTest, CutsALongPromptIntoPassesWithoutChangingTheDraft) {
  EngineOptions options;
  options.max_rows_per_pass = 7;
  CoreDriver driver(options);
  const std::string id = driver.OpenSession();
  std::vector<int32_t> prompt(30);
  for (int i = 0; i < 30; ++i) prompt[i] = i * 3 % 101;
  const auto result = driver.Run(MakeDraftCall(id, 0, prompt, 3));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone(prompt, 3));
  const auto passes = driver.model.passes();
  ASSERT_THAT(passes, SizeIs(5 + 2));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(passes[i][0].rows, 7);
    EXPECT_EQ(passes[i][0].outputs, Outputs::kNone)
        << "the head is big; only the last row's is needed";
  }
}

TEST(DraftCoreTest, PutsExtendRowsOfSomeAndDraftRowsOfOthersIntoOnePass) {
  CoreDriver driver;
  const std::string a = driver.OpenSession();
  const std::string b = driver.OpenSession();
  const auto first = driver.Draft(MakeDraftCall(a, 0, {1, 2}, 3, 1));
  ASSERT_TRUE(driver.Pass());
  const auto second = driver.Draft(MakeDraftCall(b, 0, {3, 4, 5}, 2, 2));
  ASSERT_TRUE(driver.Pass());
  const auto pass = driver.model.passes().back();
  ASSERT_THAT(pass, SizeIs(2));
  EXPECT_TRUE(pass[0].draft);
  EXPECT_EQ(pass[1].rows, 3);
  ASSERT_TRUE(driver.Pass());
  EXPECT_TRUE(first->here()) << "a chain of 3 takes 3 passes";
  EXPECT_TRUE(second->here()) << "and the one that joined later is done with it";
  EXPECT_FALSE(driver.Pass());
  EXPECT_EQ(first->value()->tree, Alone({1, 2}, 3, 1));
  EXPECT_EQ(second->value()->tree, Alone({3, 4, 5}, 2, 2));
}

TEST(DraftCoreTest, KeepsEachSessionsDraftWhileTheBatchShrinks) {
  CoreDriver driver;
  std::vector<ReplyPtr<DraftResult>> replies;
  for (int i = 0; i < 9; ++i) {
    replies.push_back(driver.Draft(MakeDraftCall(driver.OpenSession(), 0, {i, i + 1}, 1 + i, i)));
  }
  driver.RunAll();
  for (int i = 0; i < 9; ++i) {
    ASSERT_THAT(replies[i]->value(), IsOk());
    EXPECT_EQ(replies[i]->value()->tree, Alone({i, i + 1}, 1 + i, i));
  }
  EXPECT_THAT(driver.model.passes(), SizeIs(9));
  EXPECT_THAT(driver.model.passes().front(), SizeIs(9));
  EXPECT_THAT(driver.model.passes().back(), SizeIs(1));
}

TEST(DraftCoreTest, ServesTheCallsOfOneSessionInOrderAndOneAtATime) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto first = driver.Draft(MakeDraftCall(id, 0, {1, 2}, 2));
  const auto second = driver.Draft(MakeDraftCall(id, 2, {3}, 2));
  const auto third = driver.Draft(MakeDraftCall(id, 3, {4}, 2));
  while (driver.Pass()) EXPECT_THAT(driver.model.passes().back(), SizeIs(1));
  EXPECT_EQ(first->value()->tree, Alone({1, 2}, 2));
  EXPECT_EQ(second->value()->tree, Alone({1, 2, 3}, 2));
  EXPECT_EQ(third->value()->tree, Alone({1, 2, 3, 4}, 2));
}

TEST(DraftCoreTest, DraftsStatelesslyAndKeepsNothing) {
  CoreDriver driver;
  DraftCall call = MakeDraftCall("", 0, {1, 2, 3}, 4, 8);
  call.sequence = FittingManifest();
  const auto result = driver.Run(std::move(call));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2, 3}, 4, 8));
  EXPECT_EQ(driver.model.open_slots(), 0);
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0);
  EXPECT_EQ(driver.observer.opened(), 0);
}

TEST(DraftCoreTest, RefusesAStatelessCallThatBuildsOnSomething) {
  CoreDriver driver;
  DraftCall call = MakeDraftCall("", 1, {1}, 1);
  call.sequence = FittingManifest();
  EXPECT_THAT(driver.Run(std::move(call)),
              Refuses(StatusCode::kInvalidArgument, kReasonRequestInvalid));
  EXPECT_EQ(driver.model.open_slots(), 0);
}

TEST(DraftCoreTest, RefusesAStatelessCallWhoseManifestDoesNotFit) {
  CoreDriver driver;
  DraftCall call = MakeDraftCall("", 0, {1}, 1);
  Manifest manifest = FittingManifest();
  manifest.vocab_size = 55;
  call.sequence = manifest;
  EXPECT_THAT(driver.Run(std::move(call)), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kWiring));
  EXPECT_EQ(driver.observer.last_round().outcome, StatusCode::kFailedPrecondition);
}

TEST(DraftCoreTest, ReturnsWhatIsReadyWhenTheDeadlineComesDuringTheChain) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  DraftCall call = MakeDraftCall(id, 0, {1, 2}, 6);
  call.deadline = driver.now + absl::Milliseconds(3);
  const auto result = driver.Run(std::move(call));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->tree, Alone({1, 2}, 3)) << "three passes of a millisecond each";
  EXPECT_EQ(result->no_draft_reason, NoDraftReason::kDeadline);
  EXPECT_EQ(driver.observer.last_round().skipped, SkipReason::kDeadline);
  const auto next = driver.Run(MakeDraftCall(id, 2, {result->tree.tokens[0], 5}, 2));
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(next->accepted, 1);
  EXPECT_EQ(next->tree, Alone({1, 2, result->tree.tokens[0], 5}, 2));
}

TEST(DraftCoreTest, ReturnsWhatIsReadyWhenTheCallerGivesUpDuringTheChain) {
  CoreDriver driver;
  auto cancel = std::make_shared<CancelFlag>();
  DraftCall call = MakeDraftCall(driver.OpenSession(), 0, {1, 2}, 6);
  call.cancel = cancel;
  const auto reply = driver.Draft(std::move(call));
  driver.Pass();
  driver.Pass();
  cancel->Set();
  EXPECT_FALSE(driver.Pass());
  EXPECT_EQ(reply->value()->tree.size(), 2);
  EXPECT_EQ(reply->value()->no_draft_reason, NoDraftReason::kDeadline);
}

TEST(DraftCoreTest, CommitsAllRowsOfAnExtendThatWasBegun) {
  EngineOptions options;
  options.max_rows_per_pass = 2;
  CoreDriver driver(options);
  DraftCall call = MakeDraftCall(driver.OpenSession(), 0, {1, 2, 3, 4, 5, 6}, 4);
  call.deadline = driver.now + absl::Microseconds(1);
  const auto result = driver.Run(std::move(call));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->length, 6);
  EXPECT_EQ(result->tree, Alone({1, 2, 3, 4, 5, 6}, 1));
}

TEST(DraftCoreTest, RefusesACallWhoseDeadlinePassesBeforeItsFirstPass) {
  EngineOptions options;
  options.max_sessions_per_pass = 1;
  CoreDriver driver(options);
  const std::string late = driver.OpenSession();
  const auto first = driver.Draft(MakeDraftCall(driver.OpenSession(), 0, {1}, 3));
  DraftCall call = MakeDraftCall(late, 0, {1, 2}, 3);
  call.deadline = driver.now + absl::Milliseconds(2);
  const auto second = driver.Draft(std::move(call));
  driver.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(second->value(), Refuses(StatusCode::kDeadlineExceeded, kReasonDeadline));
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kDeadline));
  EXPECT_THAT(driver.Run(MakeDraftCall(late, 0, {1, 2}, 3)), IsOk());
}

TEST(DraftCoreTest, FailsEveryRoundOfAFailedPassAndNoOther) {
  EngineOptions options;
  options.max_sessions_per_pass = 2;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession();
  const std::string b = driver.OpenSession();
  const std::string c = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(a, 0, {1, 2, 3}, 0)), IsOk());
  const auto first = driver.Draft(MakeDraftCall(a, 2, {30, 31}, 3));
  const auto second = driver.Draft(MakeDraftCall(b, 0, {5}, 3));
  const auto third = driver.Draft(MakeDraftCall(c, 0, {6}, 3));
  driver.model.FailNextPass(absl::InternalError("out of order"));
  driver.RunAll();
  EXPECT_THAT(first->value(), Refuses(StatusCode::kInternal, kReasonPassFailed));
  EXPECT_THAT(second->value(), Refuses(StatusCode::kInternal, kReasonPassFailed));
  EXPECT_EQ(DetailOf(first->value().status()).resend_from, 2);
  EXPECT_EQ(DetailOf(second->value().status()).resend_from, 0);
  ASSERT_THAT(third->value(), IsOk());
  EXPECT_EQ(third->value()->tree, Alone({6}, 3));
  // Row 2 of the first session is gone with the rollback; what came before it stands.
  EXPECT_THAT(driver.Run(MakeDraftCall(a, 3, {32}, 1)),
              Refuses(StatusCode::kFailedPrecondition, kReasonBaseLengthAhead));
  const auto again = driver.Run(MakeDraftCall(a, 2, {30, 31}, 3));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Alone({1, 2, 30, 31}, 3));
}

TEST(DraftCoreTest, PutsASessionBackWhenADraftStepFailsAndJudgesOnTheRetry) {
  CoreDriver driver;
  const std::string id = driver.OpenSession();
  const auto first = driver.Run(MakeDraftCall(id, 0, {1, 2}, 3));
  ASSERT_THAT(first, IsOk());
  DraftCall call = MakeDraftCall(id, 2, {first->tree.tokens[0], 40}, 4);
  call.seq = 1;
  const auto failed = driver.Draft(call);
  driver.Pass();
  driver.Pass();
  driver.model.FailNextPass(absl::ResourceExhaustedError("no memory for a page"));
  driver.RunAll();
  EXPECT_THAT(failed->value(), StatusIs(StatusCode::kResourceExhausted));
  EXPECT_EQ(driver.observer.last_round().judgement.has_value(), false);
  const auto again = driver.Run(call);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->accepted, 1);
  EXPECT_EQ(again->tree, Alone({1, 2, first->tree.tokens[0], 40}, 4));
}

TEST(DraftCoreTest, GivesNoTokenThatCameOutOfNonFiniteLogits) {
  for (const ScoredToken bad : {ScoredToken{5, std::numeric_limits<float>::quiet_NaN()},
                                ScoredToken{5, std::numeric_limits<float>::infinity()},
                                ScoredToken{101, -1.0f}, ScoredToken{-1, -1.0f}}) {
    bool poison = false;
    FakeDraftModelOptions model_options;
    model_options.after_step = [&](std::vector<StepOutput>& outputs) {
      if (std::exchange(poison, false)) outputs[0].rows[0].top[0] = bad;
    };
    CoreDriver driver({}, model_options);
    const std::string hurt = driver.OpenSession();
    const auto first = driver.Draft(MakeDraftCall(hurt, 0, {1, 2}, 3));
    const auto second = driver.Draft(MakeDraftCall(driver.OpenSession(), 0, {5}, 3));
    driver.Pass();
    poison = true;
    driver.RunAll();
    EXPECT_THAT(first->value(), Refuses(StatusCode::kInternal, kReasonPassFailed));
    ASSERT_THAT(second->value(), IsOk()) << "the other session of the pass is not to blame";
    EXPECT_EQ(second->value()->tree, Alone({5}, 3));
    EXPECT_EQ(driver.Run(MakeDraftCall(hurt, 0, {1, 2}, 3))->tree, Alone({1, 2}, 3));
  }
}

TEST(DraftCoreTest, RefusesRowsThatTheDrafterCannotComputeWithAndSparesTheRest) {
  bool poison = false;
  FakeDraftModelOptions model_options;
  model_options.after_step = [&](std::vector<StepOutput>& outputs) {
    if (!std::exchange(poison, false)) return;
    outputs[0].rows[0].top.clear();
    outputs[0].rows[0].finite = false;
  };
  CoreDriver driver({}, model_options);
  const std::string hurt = driver.OpenSession();
  const auto first = driver.Draft(MakeDraftCall(hurt, 0, {1, 2}, 3));
  const auto second = driver.Draft(MakeDraftCall(driver.OpenSession(), 0, {5}, 3));
  poison = true;
  driver.RunAll();
  EXPECT_THAT(first->value(), Refuses(StatusCode::kInvalidArgument, kReasonNonFinite));
  ASSERT_THAT(second->value(), IsOk());
  EXPECT_EQ(second->value()->tree, Alone({5}, 3));
  EXPECT_EQ(driver.Run(MakeDraftCall(hurt, 0, {1, 2}, 3))->tree, Alone({1, 2}, 3));
}

TEST(DraftCoreTest, AnswersWithoutADraftPastTheContextLimit) {
  EngineOptions options;
  options.max_context = 6;
  CoreDriver driver(options);
  const std::string id = driver.OpenSession();
  const auto first = driver.Run(MakeDraftCall(id, 0, {1, 2, 3, 4}, 3));
  ASSERT_THAT(first, IsOk());
  const auto over = driver.Run(MakeDraftCall(id, 4, {first->tree.tokens[0], 6, 7}, 3));
  ASSERT_THAT(over, IsOk());
  EXPECT_EQ(over->no_draft_reason, NoDraftReason::kContextLimit);
  EXPECT_TRUE(over->tree.empty());
  EXPECT_EQ(over->length, 4) << "the rows are not taken";
  EXPECT_EQ(over->accepted, 1) << "but they tell how the last proposal fared";
  EXPECT_EQ(driver.observer.last_round().skipped, SkipReason::kContextLimit);
  EXPECT_EQ(driver.observer.last_round().rows, 0);
  // The worker goes on alone; its calls ahead of us are no gap.
  const auto further = driver.Run(MakeDraftCall(id, 7, {8}, 3));
  ASSERT_THAT(further, IsOk());
  EXPECT_EQ(further->no_draft_reason, NoDraftReason::kContextLimit);
  // That holds for rows that would fit, too, as long as the ones before them are missing.
  const auto between = driver.Run(MakeDraftCall(id, 5, {8}, 3));
  ASSERT_THAT(between, IsOk());
  EXPECT_EQ(between->no_draft_reason, NoDraftReason::kContextLimit);
  EXPECT_EQ(between->length, 4);
  // When it rolls back to the rows that are here, drafting goes on.
  const auto back = driver.Run(MakeDraftCall(id, 4, {50, 51}, 2));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->tree, Alone({1, 2, 3, 4, 50, 51}, 2));
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 7, {8}, 3)),
              Refuses(StatusCode::kFailedPrecondition, kReasonBaseLengthAhead));
}

TEST(DraftCoreTest, TakesRowsUpToTheContextLimitExactly) {
  EngineOptions options;
  options.max_context = 3;
  CoreDriver driver(options);
  const auto full = driver.Run(MakeDraftCall(driver.OpenSession(), 0, {1, 2, 3}, 2));
  ASSERT_THAT(full, IsOk());
  EXPECT_EQ(full->tree.size(), 2);
}

TEST(DraftCoreTest, LetsGoOfTheRowsOnceTheyAreRead) {
  CoreDriver driver;
  DraftCall call = MakeDraftCall(driver.OpenSession(), 0, {1, 2}, 3);
  const std::weak_ptr<const void> bytes = call.rows_owner;
  const auto reply = driver.Draft(std::move(call));
  EXPECT_FALSE(bytes.expired());
  driver.Pass();
  EXPECT_TRUE(bytes.expired()) << "megabytes must not wait for the chain";
  driver.RunAll();
  EXPECT_THAT(reply->value(), IsOk());
}

TEST(DraftCoreTest, TellsWhereTheTimeWent) {
  EngineOptions options;
  options.max_rows_per_pass = 2;
  CoreDriver driver(options);
  DraftCall call = MakeDraftCall(driver.OpenSession(), 0, {1, 2, 3}, 3);
  call.arrival = driver.now - absl::Milliseconds(7);
  const auto reply = driver.Draft(std::move(call));
  driver.Pass(absl::Milliseconds(10));
  driver.Pass(absl::Milliseconds(20));
  driver.Pass(absl::Milliseconds(40));
  driver.Pass(absl::Milliseconds(80));
  ASSERT_THAT(reply->value(), IsOk());
  const DraftTiming timing = reply->value()->timing;
  EXPECT_EQ(timing.queue, absl::Milliseconds(7));
  EXPECT_EQ(timing.extend, absl::Milliseconds(30));
  EXPECT_EQ(timing.step, absl::Milliseconds(120));
  EXPECT_EQ(timing.total, absl::Milliseconds(157));
  const RoundRecord record = driver.observer.last_round();
  EXPECT_EQ(record.outcome, StatusCode::kOk);
  EXPECT_EQ(record.queue_wait, timing.queue);
  EXPECT_EQ(record.extend_time, timing.extend);
  EXPECT_EQ(record.step_time, timing.step);
  EXPECT_EQ(record.total, timing.total);
  EXPECT_EQ(record.rows, 3);
  EXPECT_EQ(record.bytes, 3 * 12 * 4);
  EXPECT_EQ(record.proposed, 3);
  const auto passes = driver.observer.passes();
  ASSERT_THAT(passes, SizeIs(4));
  EXPECT_EQ(passes[0].rows, 2);
  EXPECT_EQ(passes[1].rows, 1);
  EXPECT_EQ(passes[3].duration, absl::Milliseconds(80));
}

TEST(DraftCoreTest, TellsHowManyCallsWaitAndHowManyAreUnderWay) {
  EngineOptions options;
  options.max_sessions_per_pass = 1;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession();
  driver.Draft(MakeDraftCall(a, 0, {1}, 2));
  driver.Draft(MakeDraftCall(a, 1, {2}, 1));
  driver.Draft(MakeDraftCall(driver.OpenSession(), 0, {1}, 1));
  driver.RunAll();
  EXPECT_THAT(driver.observer.loads(),
              ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(2, 1), Pair(2, 0), Pair(1, 1),
                          Pair(1, 0), Pair(0, 1), Pair(0, 0)));
}

}  // namespace
}  // namespace aerie
