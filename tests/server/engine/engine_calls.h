// Calls of a DraftEngine whose answers a test waits for, and a model whose passes it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/draft_engine.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {

// An answer that a test waits for.
template <typename T>
class Awaited {
 public:
  auto Callback() {
    return [state = state_](absl::StatusOr<T> value) {
      EXPECT_FALSE(state->here.try_wait()) << "a call was answered twice";
      state->value = std::move(value);
      state->here.count_down();
    };
  }
  bool here() const { return state_->here.try_wait(); }
  const absl::StatusOr<T>& Wait() const {
    state_->here.wait();
    return state_->value;
  }

 private:
  struct State {
    std::latch here{1};
    absl::StatusOr<T> value;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline absl::StatusOr<OpenResult> Open(DraftEngine& engine) {
  Awaited<OpenResult> reply;
  engine.Open(FittingManifest(), {}, reply.Callback());
  return reply.Wait();
}

inline Awaited<DraftResult> Draft(DraftEngine& engine, DraftCall call,
                                  DraftEngine::Wake wake = DraftEngine::Wake::kOwnThread) {
  Awaited<DraftResult> reply;
  engine.Draft(std::move(call), reply.Callback(), wake);
  return reply;
}

inline Awaited<AcceptanceRecord> Close(DraftEngine& engine, const std::string& id) {
  Awaited<AcceptanceRecord> reply;
  engine.Close(id, {}, SessionEnd::kClosed, reply.Callback());
  return reply;
}

// Holds the engine's thread in a pass until it is let go.
struct Gate {
  std::latch entered{1};
  std::latch open{1};
};

// Holds the first passes, one gate each.
inline std::unique_ptr<FakeDraftModel> GatedModel(std::vector<Gate*> gates) {
  FakeDraftModelOptions options;
  options.before_step = [gates = std::move(gates),
                         pass = size_t{0}](absl::Span<const StepSequence>) mutable {
    if (pass == gates.size()) return;
    Gate* gate = gates[pass++];
    gate->entered.count_down();
    gate->open.wait();
  };
  return std::make_unique<FakeDraftModel>(std::move(options));
}

// Six threads with a session each make forty rounds of calls, every one of which drafts what its
// sequence gets alone. `wake(thread, round)` says who computes.
template <typename WakeOf>
void ExpectRightDraftsOnManyThreads(DraftEngine& engine, const RecordingObserver& observer,
                                    WakeOf wake) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 40;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&engine, &wake, t] {
      const auto opened = Open(engine);
      ASSERT_THAT(opened, IsOk());
      const auto variant = static_cast<uint64_t>(t);
      std::vector<int32_t> tokens;
      for (int round = 0; round < kRounds; ++round) {
        const auto base = static_cast<int64_t>(tokens.size());
        const std::vector<int32_t> news(static_cast<size_t>(1 + round % 3), t);
        tokens.insert(tokens.end(), news.begin(), news.end());
        const auto reply =
            Draft(engine, MakeDraftCall(opened->session_id, base, news, 1 + t % 4, variant),
                  wake(t, round));
        if (wake(t, round) == DraftEngine::Wake::kNobody) engine.Help();
        ASSERT_THAT(reply.Wait(), IsOk());
        const OwnedRows rows =
            MakeRows(FittingManifest(), 0, static_cast<int64_t>(tokens.size()), variant);
        ASSERT_EQ(reply.Wait()->tree, DraftAlone(tokens, rows.view, 1 + t % 4));
      }
      ASSERT_THAT(Close(engine, opened->session_id).Wait(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(engine.Drain(absl::InfiniteFuture()));
  EXPECT_THAT(observer.rounds(), testing::SizeIs(kThreads * kRounds));
  EXPECT_EQ(observer.loads().back(), std::make_pair(0, 0));
}

}  // namespace aerie
