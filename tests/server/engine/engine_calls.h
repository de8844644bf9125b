// Calls of a DraftEngine whose answers a test waits for, and a model whose passes it holds.
#pragma once

#include <cstddef>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/engine/draft_engine.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/sequences.h"

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

}  // namespace aerie
