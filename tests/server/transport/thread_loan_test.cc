// gRPC's threads that are lent to an engine: which are, and that reading goes on.
#include "server/transport/thread_loan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

// An engine, and calls of one session that each begin at its first row.
class LoanTest : public ::testing::Test {
 protected:
  LoanTest() {
    served_.engine = &engine_;
    std::latch opened{1};
    engine_.Open(FittingManifest(), {}, [&](absl::StatusOr<OpenResult> result) {
      EXPECT_THAT(result, IsOk());
      session_ = result->session_id;
      opened.count_down();
    });
    opened.wait();
  }

  // Through `loan`. The answer counts `answered` down and tells whether this thread gave it.
  void Draft(ThreadLoan& loan, int rows, std::latch& answered) {
    loan.Draft(
        drafter_, MakeDraftCall(session_, 0, std::vector<int32_t>(static_cast<size_t>(rows), 1), 2),
        [this, &answered, asker = std::this_thread::get_id()](absl::StatusOr<DraftResult> result) {
          EXPECT_THAT(result, IsOk());
          answered_here_ = std::this_thread::get_id() == asker;
          answered.count_down();
        });
  }

  RecordingObserver observer_;
  DraftEngine engine_{{}, std::make_unique<FakeDraftModel>(), &observer_};
  ServedDrafter served_;
  const ServedDrafterPtr drafter_{&served_, [](const ServedDrafter*) {}};
  std::string session_;
  std::atomic<bool> answered_here_{false};
};

// Whether the engine's own thread is at rest when a call comes is a race, so these try again.
TEST_F(LoanTest, AThreadWithFewRowsComputesThemTimeAndAgain) {
  for (int lent = 0; lent < 3;) {
    std::latch answered{1};
    {
      ThreadLoan loan(64);
      Draft(loan, 64, answered);
    }
    answered.wait();
    if (answered_here_) ++lent;
  }
}

TEST_F(LoanTest, AThreadWithManyRowsIsNotLent) {
  for (int i = 0; i < 20; ++i) {
    std::latch answered{1};
    ThreadLoan loan(65);
    Draft(loan, 65, answered);
    answered.wait();  // while the loan lasts: the engine's own thread was woken
    EXPECT_FALSE(answered_here_);
  }
}

TEST_F(LoanTest, OneThreadAtATimeIsLent) {
  const ThreadLoan first(1);
  for (int i = 0; i < 20; ++i) {
    std::latch answered{1};
    ThreadLoan second(1);
    Draft(second, 1, answered);
    answered.wait();
    EXPECT_FALSE(answered_here_);
  }
}

TEST_F(LoanTest, AThreadIsLentForOneDrafterAlone) {
  RecordingObserver other_observer;
  DraftEngine other_engine({}, std::make_unique<FakeDraftModel>(), &other_observer);
  ServedDrafter other;
  other.engine = &other_engine;
  for (int i = 0; i < 20; ++i) {
    std::latch answered{1}, answered_elsewhere{1};
    {
      ThreadLoan loan(2);
      Draft(loan, 1, answered);
      // Nobody has opened this session there; what counts is that the refusal comes.
      loan.Draft({&other, [](const ServedDrafter*) {}}, MakeDraftCall(session_, 0, {1}, 2),
                 [&](absl::StatusOr<DraftResult> result) {
                   EXPECT_THAT(result, StatusIs(absl::StatusCode::kNotFound));
                   answered_elsewhere.count_down();
                 });
      answered_elsewhere.wait();
    }
    answered.wait();
  }
}

TEST(LentReaderTest, AStreamOfTwoSessionsIsReadWhileOneIsDraftedFor) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestStream stream(server.stub());
  TestSequence slow(1), other(2);
  stream.Open(&slow);
  stream.Open(&other);
  for (int i = 0; i < 20; ++i) {
    gate.Close();
    const uint64_t drafted = stream.SendDraft(slow.NextRequest(2, 3));
    gate.WaitUntilReached();
    v1::DraftRequest bad = other.NextRequest(2, 2);
    bad.mutable_hidden_states()->mutable_data()->pop_back();
    const uint64_t refused = stream.SendDraft(bad);
    // Were the stream not read on, this would wait for the pass that waits for it.
    EXPECT_EQ(stream.Read().id(), refused);
    gate.Open();
    EXPECT_EQ(stream.Read().id(), drafted);
    slow.Commit(2);
  }
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST(LentReaderTest, CallsThatMeetOnOneStreamShareTheirPasses) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestStream stream(server.stub());
  std::vector<TestSequence> sequences;
  for (uint64_t id = 0; id < 6; ++id) {
    sequences.emplace_back(id);
    stream.Open(&sequences.back());
  }
  TestSequence other(6);  // an answer to a session's call waits for those before it
  stream.Open(&other);
  gate.Close();
  stream.SendDraft(sequences[0].NextRequest(2, 8));
  gate.WaitUntilReached();
  for (size_t i = 1; i < sequences.size(); ++i) {
    stream.SendDraft(sequences[i].NextRequest(2, 8));
  }
  // By the reply to this one the server has read the others.
  v1::DraftRequest bad = other.NextRequest(2, 2);
  bad.mutable_hidden_states()->mutable_data()->pop_back();
  stream.SendDraft(bad);
  EXPECT_TRUE(stream.Read().has_error());
  gate.Open();
  for (size_t i = 0; i < sequences.size(); ++i) EXPECT_TRUE(stream.Read().has_draft());
  size_t largest = 0;
  for (const auto& pass : server.model().passes()) largest = std::max(largest, pass.size());
  EXPECT_EQ(largest, sequences.size());
  EXPECT_TRUE(stream.HalfClose().ok());
}

}  // namespace
}  // namespace aerie
