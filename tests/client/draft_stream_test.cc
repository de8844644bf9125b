// Many sessions on one stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "client/draft_client.h"
#include "common/error_detail.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"
#include "tests/client/worker.h"

namespace aerie {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DraftStreamTest : public ::testing::Test {
 protected:
  DraftStreamTest() {
    auto client = DraftClient::Create(
        server_.address(), {.transport = TransportKind::kStream, .deadline = absl::Seconds(60)});
    client_ = *std::move(client);
  }
  std::unique_ptr<DraftSession> OpenSession() {
    auto session = client_->Open(FakeDraftService::FittingManifest(), {});
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  FakeDraftService service_;
  TestServer server_{&service_};
  std::unique_ptr<DraftClient> client_;
};

TEST_F(DraftStreamTest, FiftySessionsInterleavedEachGetTheirOwnDrafts) {
  constexpr int kSessions = 50, kRounds = 20;
  std::vector<std::thread> threads;
  std::vector<int> right(kSessions, 0);
  for (int i = 0; i < kSessions; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(static_cast<uint32_t>(i + 1));
      auto session = OpenSession();
      int64_t base = 0;
      for (int round = 0; round < kRounds; ++round) {
        worker.Grow(base + 1 + (i + round) % 4);
        const int32_t k = 1 + (i + round) % 6;
        const DraftOutcome outcome = session->Draft(worker.Call(base, k));
        if (outcome.status.ok() && outcome.tree.tokens == worker.ExpectedDraft(k)) ++right[i];
        base = worker.length();
      }
      const auto record = session->Close({});
      EXPECT_TRUE(record.ok()) << record.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(kRounds));
  EXPECT_EQ(service_.streams_started(), 1);
  EXPECT_THAT(service_.Sessions(), IsEmpty());
}

TEST_F(DraftStreamTest, MatchesAnAnswerThatWasOvertakenByAnother) {
  auto slow = OpenSession();
  auto fast = OpenSession();
  Worker slow_worker(3), fast_worker(4);
  slow_worker.Grow(4);
  fast_worker.Grow(6);
  absl::Notification arrived;
  service_.after_draft = [&](const v1::DraftRequest& request) {
    if (request.k() == 7) arrived.Notify();
    return absl::OkStatus();
  };
  DraftOutcome slow_outcome;
  // The service holds back the answer to a k of 7 until it has given another one.
  std::thread thread([&] { slow_outcome = slow->Draft(slow_worker.Call(0, 7)); });
  arrived.WaitForNotification();
  const DraftOutcome fast_outcome = fast->Draft(fast_worker.Call(0, 2));
  thread.join();
  EXPECT_THAT(fast_outcome.tree.tokens, ElementsAreArray(fast_worker.ExpectedDraft(2)));
  EXPECT_THAT(slow_outcome.tree.tokens, ElementsAreArray(slow_worker.ExpectedDraft(7)));
}

TEST_F(DraftStreamTest, AnErrorOfOneSessionLeavesTheStreamToTheOthers) {
  auto bad = OpenSession();
  auto good = OpenSession();
  Worker worker;
  worker.Grow(4);
  DraftInput input = worker.Call(2, 2);  // a gap
  EXPECT_EQ(bad->Draft(input).status.code(), absl::StatusCode::kFailedPrecondition);
  const DraftOutcome outcome = good->Draft(worker.Call(0, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.tokens, ElementsAreArray(worker.ExpectedDraft(2)));
  EXPECT_EQ(service_.streams_started(), 1);
}

TEST_F(DraftStreamTest, EveryWaitingCallLearnsThatTheStreamBroke) {
  constexpr int kSessions = 8;
  auto impatient = DraftClient::Create(server_.address(), {.transport = TransportKind::kStream,
                                                           .deadline = absl::Seconds(60),
                                                           .patience = absl::ZeroDuration()});
  client_ = *std::move(impatient);
  std::vector<std::unique_ptr<DraftSession>> sessions;
  for (int i = 0; i < kSessions; ++i) sessions.push_back(OpenSession());
  absl::Notification first_arrived, release;
  std::atomic<bool> told{false};
  service_.before_draft = [&](const v1::DraftRequest&) {
    if (!told.exchange(true)) first_arrived.Notify();
    release.WaitForNotification();
    return absl::OkStatus();
  };
  Worker worker;
  worker.Grow(2);
  std::vector<std::thread> threads;
  std::vector<absl::StatusCode> codes(kSessions, absl::StatusCode::kOk);
  for (int i = 0; i < kSessions; ++i) {
    threads.emplace_back(
        [&, i] { codes[i] = sessions[i]->Draft(worker.Call(0, 1)).status.code(); });
  }
  first_arrived.WaitForNotification();
  // Shutdown() waits for the handler that hangs, so it runs beside the callers.
  std::thread stopper([&] { server_.Stop(); });
  for (std::thread& thread : threads) thread.join();
  release.Notify();
  stopper.join();
  EXPECT_THAT(codes, ::testing::Each(absl::StatusCode::kUnavailable));
}

TEST_F(DraftStreamTest, EndsTheStreamWhenTheClientGoes) {
  auto session = OpenSession();
  Worker worker;
  worker.Grow(2);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  session.reset();
  client_.reset();  // waits for the server's end of the stream
  EXPECT_THAT(service_.Sessions(), IsEmpty());
}

}  // namespace
}  // namespace aerie
