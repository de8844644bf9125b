// Threads that are lent to an engine: what they compute, and that they are given back.
//
// Whether the engine's own thread still has the core when one is lent is a race: it has just
// answered something. So most tests lend again and again until they were taken.
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/draft_engine.h"
#include "server/engine/row_observer.h"
#include "tests/server/engine/engine_calls.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::SizeIs;
using Wake = DraftEngine::Wake;

// Which thread runs the passes.
class PassThreads {
 public:
  auto Hook() {
    return [this](absl::Span<const StepSequence>) { last_ = std::this_thread::get_id(); };
  }
  bool LastWasThisOne() const { return last_ == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> last_{};
};

// Rounds of one row on a session, one after the other.
class LentRounds {
 public:
  explicit LentRounds(DraftEngine& engine, uint64_t variant = 0)
      : engine_(engine), id_(Open(engine)->session_id), variant_(variant) {}

  // The call computes on the calling thread, if the engine takes it.
  Awaited<DraftResult> Next(int32_t k) {
    const int64_t base = length_++;
    auto reply = Draft(engine_, MakeDraftCall(id_, base, {1}, k, variant_), Wake::kNobody);
    engine_.Help();
    return reply;
  }
  const std::string& id() const { return id_; }
  int64_t length() const { return length_; }

 private:
  DraftEngine& engine_;
  const std::string id_;
  const uint64_t variant_;
  int64_t length_ = 0;
};

TEST(LentThreadTest, ComputesAndAnswersWhenNobodyElseDoes) {
  PassThreads threads;
  FakeDraftModelOptions model;
  model.before_step = threads.Hook();
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(std::move(model)), &observer);
  LentRounds rounds(engine);
  std::vector<int32_t> tokens;
  while (true) {
    const auto reply = rounds.Next(4);
    tokens.push_back(1);
    ASSERT_THAT(reply.Wait(), IsOk());
    const auto length = static_cast<int64_t>(tokens.size());
    ASSERT_EQ(reply.Wait()->tree,
              DraftAlone(tokens, MakeRows(FittingManifest(), 0, length).view, 4));
    if (threads.LastWasThisOne()) break;
  }
}

TEST(LentThreadTest, HasAnsweredItsCallWhenItIsGivenBack) {
  PassThreads threads;
  FakeDraftModelOptions model;
  model.before_step = threads.Hook();
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(std::move(model)), &observer);
  LentRounds rounds(engine);
  while (true) {
    const auto reply = rounds.Next(3);
    const bool answered = reply.here();
    ASSERT_THAT(reply.Wait(), IsOk());
    if (!threads.LastWasThisOne()) continue;
    EXPECT_TRUE(answered);
    break;
  }
}

TEST(LentThreadTest, IsNotTakenByAModelThatKeepsToOneThread) {
  PassThreads threads;
  FakeDraftModelOptions model;
  model.before_step = threads.Hook();
  model.runs_on_any_thread = false;
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(std::move(model)), &observer);
  LentRounds rounds(engine);
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(rounds.Next(3).Wait(), IsOk()) << "the engine's own thread was not woken";
    ASSERT_FALSE(threads.LastWasThisOne());
  }
}

// Lends the calling thread until it answers a call, and does `then` within that answer.
void AnswerOnThisThread(DraftEngine& engine, const std::function<void()>& then) {
  const std::string id = Open(engine)->session_id;
  for (bool lent = false; !lent;) {
    std::latch answered{1};
    engine.Draft(
        MakeDraftCall(id, 0, {1}, 1),
        [&, here = std::this_thread::get_id()](absl::StatusOr<DraftResult> result) {
          EXPECT_THAT(result, IsOk());
          lent = std::this_thread::get_id() == here;
          if (lent) then();
          answered.count_down();
        },
        Wake::kNobody);
    engine.Help();
    answered.wait();
  }
}

// Calls of a session of its own, each made by the answer to the one before.
class EndlessCalls {
 public:
  static constexpr int kMany = 2'000'000;

  explicit EndlessCalls(DraftEngine& engine) : engine_(engine), id_(Open(engine)->session_id) {}

  // Once.
  void Begin() { Call(); }
  // Waits for the last answer. False: there were as many as nobody waits for.
  bool End() {
    enough_ = true;
    ended_.wait();
    return calls_ < kMany;
  }

 private:
  void Call() {
    ++calls_;
    // Always the first row: what the last call committed is rolled back.
    engine_.Draft(MakeDraftCall(id_, 0, {1}, 1), [this](absl::StatusOr<DraftResult> result) {
      EXPECT_THAT(result, IsOk());
      if (enough_ || !result.ok() || calls_ == kMany) return ended_.count_down();
      Call();
    });
  }

  DraftEngine& engine_;
  const std::string id_;
  std::atomic<bool> enough_{false};
  int calls_ = 0;
  std::latch ended_{1};
};

TEST(LentThreadTest, IsGivenBackWhileOthersCallWithoutEnd) {
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(), &observer);
  EndlessCalls others(engine);
  AnswerOnThisThread(engine, [&] { others.Begin(); });
  EXPECT_TRUE(others.End()) << "the thread was kept for the calls of others";
}

// Holds the thread that made it in the first pass that runs there.
struct HeldHere {
  auto Hook() {
    return [this, here = std::this_thread::get_id()](absl::Span<const StepSequence>) {
      if (std::this_thread::get_id() != here || was_held.exchange(true)) return;
      gate.entered.count_down();
      gate.open.wait();
    };
  }
  bool ever() const { return was_held; }

  Gate gate;
  std::atomic<bool> was_held{false};
};

TEST(LentThreadTest, IsNotWaitedForByAnotherThatIsLent) {
  HeldHere held;
  FakeDraftModelOptions model;
  model.before_step = held.Hook();
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(std::move(model)), &observer);
  LentRounds first(engine), second(engine, /*variant=*/2);
  std::optional<Awaited<DraftResult>> reply;
  std::thread other([&] {
    held.gate.entered.wait();
    reply = second.Next(2);  // returns while the first thread is held
    held.gate.open.count_down();
  });
  while (!held.ever()) ASSERT_THAT(first.Next(2).Wait(), IsOk());
  other.join();
  EXPECT_THAT(reply->Wait(), IsOk());
}

// Wants one trial, once it is told to.
class TrialWish final : public RowObserver {
 public:
  std::unique_ptr<RowWatch> Watch(const WatchedRows&, absl::Time) override { return nullptr; }
  std::optional<Trial> TakeTrial() override {
    if (!wished_.exchange(false)) return std::nullopt;
    rows_ = MakeRows(FittingManifest(), 0, 2);
    return Trial{.base_length = 0, .tokens = {1, 2}, .rows = rows_.view, .rows_owner = nullptr};
  }
  void OnTrial(absl::Span<const float> log_probs, absl::Time) override {
    EXPECT_THAT(log_probs, SizeIs(1));
    ran_on_ = std::this_thread::get_id();
    ran_.count_down();
  }

  void Wish() { wished_ = true; }
  std::thread::id WaitForThread() {
    ran_.wait();
    return ran_on_;
  }

 private:
  std::atomic<bool> wished_{false};
  OwnedRows rows_;
  std::thread::id ran_on_;
  std::latch ran_{1};
};

TEST(LentThreadTest, LeavesTrialsToTheEnginesOwnThreadAndWakesIt) {
  RecordingObserver observer;
  TrialWish trials;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(), &observer, &trials);
  AnswerOnThisThread(engine, [&] { trials.Wish(); });
  EXPECT_NE(trials.WaitForThread(), std::this_thread::get_id());
}

TEST(LentThreadTest, DraftsForManyThatLendAndManyThatDoNot) {
  RecordingObserver observer;
  EngineOptions options;
  options.max_sessions_per_pass = 4;
  DraftEngine engine(options, std::make_unique<FakeDraftModel>(), &observer);
  ExpectRightDraftsOnManyThreads(engine, observer, [](int thread, int round) {
    return (round + thread) % 3 != 0 ? Wake::kNobody : Wake::kOwnThread;
  });
}

TEST(LentThreadTest, FinishesItsCallWhileTheEngineDrains) {
  HeldHere held;
  FakeDraftModelOptions model;
  model.before_step = held.Hook();
  RecordingObserver observer;
  DraftEngine engine({}, std::make_unique<FakeDraftModel>(std::move(model)), &observer);
  LentRounds rounds(engine);
  bool drained = false;
  std::thread drain([&] {
    held.gate.entered.wait();
    EXPECT_FALSE(engine.Drain(absl::InfinitePast()));
    held.gate.open.count_down();
    drained = engine.Drain(absl::InfiniteFuture());
  });
  while (!held.ever()) EXPECT_THAT(rounds.Next(3).Wait(), IsOk());
  drain.join();
  EXPECT_TRUE(drained);
}

}  // namespace
}  // namespace aerie
