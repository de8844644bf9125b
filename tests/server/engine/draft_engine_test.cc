// The thread, the door and the drain. What is drafted is the core's business and tested there.
#include "server/engine/draft_engine.h"

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/engine_calls.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(DraftEngineTest, OpensDraftsAndCloses) {
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(), &observer);
  EXPECT_EQ(engine.spec().name, "fake-drafter");
  const auto opened = Open(engine);
  ASSERT_THAT(opened, IsOk());
  const auto drafted = Draft(engine, MakeDraftCall(opened->session_id, 0, {1, 2, 3}, 4));
  ASSERT_THAT(drafted.Wait(), IsOk());
  EXPECT_EQ(drafted.Wait()->tree, DraftAlone({1, 2, 3}, MakeRows(FittingManifest(), 0, 3).view, 4));
  EXPECT_GE(drafted.Wait()->timing.total, drafted.Wait()->timing.extend);
  ASSERT_THAT(Close(engine, opened->session_id).Wait(), IsOk());
  EXPECT_THAT(observer.rounds(), SizeIs(1)) << "told before the reply";
  EXPECT_THAT(observer.ended(), SizeIs(1));
}

TEST(DraftEngineTest, TurnsCallsAwayAtTheDoorWhenTooManyWait) {
  Gate gate;
  RecordingObserver observer;
  EngineOptions options;
  options.max_queued = 2;
  DraftEngine engine(options, GatedModel({&gate}), &observer);
  const std::string id = Open(engine)->session_id;
  const auto running = Draft(engine, MakeDraftCall(id, 0, {1}, 2));
  gate.entered.wait();
  // The call in the pass waits no more, so two have room.
  const auto second = Draft(engine, MakeDraftCall(id, 1, {2}, 2));
  const auto third = Draft(engine, MakeDraftCall(id, 2, {3}, 2));
  const auto fourth = Draft(engine, MakeDraftCall(id, 3, {4}, 2));
  ASSERT_TRUE(fourth.here()) << "refused on the caller's thread";
  EXPECT_THAT(fourth.Wait(), Refuses(StatusCode::kResourceExhausted, kReasonQueueFull));
  EXPECT_GT(DetailOf(fourth.Wait().status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(observer.rejected(), ElementsAre(RejectReason::kQueueFull));
  gate.open.count_down();
  EXPECT_THAT(running.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  EXPECT_THAT(third.Wait(), IsOk());
  EXPECT_THAT(Draft(engine, MakeDraftCall(id, 3, {4}, 2)).Wait(), IsOk());
}

TEST(DraftEngineTest, CountsTheCallsThatWaitBehindOthersOfTheirSession) {
  Gate first_pass, second_pass;
  RecordingObserver observer;
  EngineOptions options;
  options.max_queued = 1;
  DraftEngine engine(options, GatedModel({&first_pass, &second_pass}), &observer);
  const std::string id = Open(engine)->session_id;
  const auto running = Draft(engine, MakeDraftCall(id, 0, {1}, 3));
  first_pass.entered.wait();
  const auto waiting = Draft(engine, MakeDraftCall(id, 1, {2}, 2));
  first_pass.open.count_down();
  second_pass.entered.wait();
  // By now the waiting call has left the mailbox, and stands behind the running one.
  EXPECT_THAT(Draft(engine, MakeDraftCall(id, 2, {3}, 2)).Wait(),
              Refuses(StatusCode::kResourceExhausted, kReasonQueueFull));
  second_pass.open.count_down();
  EXPECT_THAT(running.Wait(), IsOk());
  EXPECT_THAT(waiting.Wait(), IsOk());
}

TEST(DraftEngineTest, LetsACallbackCallAgainEvenWithAQueueOfOne) {
  RecordingObserver observer;
  EngineOptions options;
  options.max_queued = 1;
  DraftEngine engine(options, std::make_unique<FakeDraftModel>(), &observer);
  const std::string id = Open(engine)->session_id;
  std::latch done{1};
  absl::Status failure;
  int64_t length = 0;
  std::function<void(absl::StatusOr<DraftResult>)> next = [&](absl::StatusOr<DraftResult> result) {
    if (result.ok()) length = result->length;
    if (!result.ok() || length == 50) {
      failure = result.status();
      done.count_down();
      return;
    }
    engine.Draft(MakeDraftCall(id, length, {1}, 2), next);
  };
  engine.Draft(MakeDraftCall(id, 0, {1}, 2), next);
  done.wait();
  EXPECT_THAT(failure, IsOk());
  EXPECT_EQ(length, 50);
}

TEST(DraftEngineTest, FinishesWhatWasTakenAndRefusesTheRestWhileDraining) {
  Gate gate;
  RecordingObserver observer;
  DraftEngine engine({}, GatedModel({&gate}), &observer);
  const std::string id = Open(engine)->session_id;
  const auto running = Draft(engine, MakeDraftCall(id, 0, {1}, 3));
  const auto waiting = Draft(engine, MakeDraftCall(id, 1, {2}, 3));
  gate.entered.wait();
  EXPECT_FALSE(engine.Drain(absl::InfinitePast())) << "two calls are open";
  const auto late = Draft(engine, MakeDraftCall(id, 2, {3}, 3));
  ASSERT_TRUE(late.here());
  EXPECT_THAT(late.Wait(), Refuses(StatusCode::kUnavailable, kReasonDraining));
  EXPECT_THAT(Open(engine), Refuses(StatusCode::kUnavailable, kReasonDraining));
  gate.open.count_down();
  EXPECT_TRUE(engine.Drain(absl::InfiniteFuture()));
  EXPECT_TRUE(running.here());
  EXPECT_TRUE(waiting.here());
  EXPECT_THAT(running.Wait(), IsOk());
  EXPECT_THAT(waiting.Wait(), IsOk());
  EXPECT_TRUE(engine.Drain(absl::InfinitePast())) << "idempotent";
  EXPECT_THAT(Close(engine, id).Wait(), IsOk()) << "closing goes on while draining";
}

TEST(DraftEngineTest, AnswersEverythingAndEndsItsSessionsWhenItGoesAway) {
  Gate gate;
  RecordingObserver observer;
  auto engine = std::make_unique<DraftEngine>(EngineOptions(), GatedModel({&gate}), &observer);
  const std::string id = Open(*engine)->session_id;
  const auto running = Draft(*engine, MakeDraftCall(id, 0, {1}, 8));
  gate.entered.wait();
  const auto waiting = Draft(*engine, MakeDraftCall(id, 1, {2}, 8));
  std::thread ending([&] { engine.reset(); });
  gate.open.count_down();
  ending.join();
  EXPECT_TRUE(running.here());
  ASSERT_TRUE(waiting.here());
  // Whether the pass under way was the last one is a race; that all is answered and ended is not.
  for (const auto& reply : {running, waiting}) {
    if (!reply.Wait().ok()) {
      EXPECT_THAT(reply.Wait(), StatusIs(StatusCode::kUnavailable));
    }
  }
  ASSERT_THAT(observer.ended(), SizeIs(1));
  EXPECT_EQ(observer.last_ended().end, SessionEnd::kShutdown);
}

TEST(DraftEngineTest, ClosesIdleSessionsByItself) {
  RecordingObserver observer;
  EngineOptions options;
  options.session_lease = absl::Milliseconds(1);
  DraftEngine engine(options, std::make_unique<FakeDraftModel>(), &observer);
  const std::string id = Open(engine)->session_id;
  observer.WaitForEnded(1);
  EXPECT_EQ(observer.last_ended().end, SessionEnd::kLease);
  EXPECT_THAT(Draft(engine, MakeDraftCall(id, 0, {1}, 1)).Wait(),
              Refuses(StatusCode::kNotFound, kReasonSessionUnknown));
}

TEST(DraftEngineTest, StopsAChainWhoseCallerGaveUp) {
  auto cancel = std::make_shared<CancelFlag>();
  Gate gate;
  RecordingObserver observer;
  DraftEngine engine({}, GatedModel({&gate}), &observer);
  DraftCall call = MakeDraftCall(Open(engine)->session_id, 0, {1, 2}, 16);
  call.cancel = cancel;
  const auto reply = Draft(engine, std::move(call));
  gate.entered.wait();
  cancel->Set();
  gate.open.count_down();
  ASSERT_THAT(reply.Wait(), IsOk());
  EXPECT_EQ(reply.Wait()->tree.size(), 1);
  EXPECT_EQ(reply.Wait()->no_draft_reason, NoDraftReason::kDeadline);
}

TEST(DraftEngineTest, DraftsForManyThreadsAtOnceAsForEachAlone) {
  RecordingObserver observer;
  EngineOptions options;
  options.max_sessions_per_pass = 4;
  options.max_rows_per_pass = 3;
  DraftEngine engine(options, std::make_unique<FakeDraftModel>(), &observer);
  ExpectRightDraftsOnManyThreads(engine, observer,
                                 [](int, int) { return DraftEngine::Wake::kOwnThread; });
}

}  // namespace
}  // namespace aerie
