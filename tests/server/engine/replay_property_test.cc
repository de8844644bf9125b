// The property on which everything rests: whatever calls led there, a session's next draft is the
// one that a fresh session gives for the committed tokens alone, in a batch or not. The histories
// have chains and trees, searched and drawn, forks, late starts, rollbacks, windows, failing passes
// and a store that is too small for all.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/kv_limits.h"
#include "tests/server/engine/core_driver.h"
#include "tests/server/engine/replay_worker.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr size_t kSequences = 5;

// Worlds of all kinds, one a seed.
EngineOptions OptionsOf(int seed) {
  EngineOptions options;
  options.max_k = 8;
  options.max_context = 64;
  options.max_rows_per_pass = 1 + seed % 7;
  options.max_sessions_per_pass = 1 + seed % 5;
  if (seed % 3 == 1) {
    options.draft_window = 3 + seed % 11;
    options.draft_sink = seed % 4;
  }
  return options;
}

FakeDraftModelOptions StoreOf(int seed) {
  FakeDraftModelOptions model;
  model.kv_store.page_rows = 1 + seed % 5;
  // Between room for hardly more than one session and room for all.
  const int64_t one = MostPagesOfSession(OptionsOf(seed), model.kv_store.page_rows, kMostTreeRows);
  model.kv_store.num_pages = static_cast<int32_t>(one * (2 + seed % 4) / 2);
  return model;
}

struct Tally {
  int answered = 0, evicted = 0, no_memory = 0, failed = 0, forked = 0;
};

void RunHistory(int seed, Tally* tally) {
  CoreDriver driver(OptionsOf(seed), StoreOf(seed));
  ReplayWorker worker(static_cast<uint64_t>(seed), OptionsOf(seed), &driver);
  std::vector<ReplaySequence> sequences;
  for (size_t i = 0; i < kSequences; ++i) sequences.push_back(worker.NewSequence());
  std::vector<std::pair<size_t, ReplayCall>> open;

  for (int step = 0; step < 400; ++step) {
    const auto which = static_cast<size_t>(worker.Draw(0, kSequences - 1));
    const auto is_open = [&](size_t sequence) {
      return std::any_of(open.begin(), open.end(),
                         [&](const auto& call) { return call.first == sequence; });
    };
    if (!is_open(which)) {
      if (worker.IsFull(sequences[which]) || worker.Draw(0, 30) == 0) {
        EXPECT_THAT(driver.RunClose(sequences[which].id), IsOk());
        const auto other = static_cast<size_t>(worker.Draw(0, kSequences - 1));
        const bool forks = other != which && !is_open(other) && worker.Draw(0, 1) == 0 &&
                           worker.Fork(sequences[other], &sequences[which]);
        if (!forks) sequences[which] = worker.NewSequence();
        tally->forked += forks ? 1 : 0;
      }
      open.emplace_back(which, worker.Call(&sequences[which]));
    }
    if (worker.Draw(0, 60) == 0) driver.model.FailNextPass(absl::InternalError("out of order"));
    for (int passes = worker.Draw(0, 3); passes > 0; --passes) driver.Pass();
    if (step % 50 == 49) driver.RunAll();
    for (auto& [index, call] : open) {
      if (!call.reply->here()) continue;
      ASSERT_NO_FATAL_FAILURE(worker.TakeAnswer(call, &sequences[index]))
          << "seed " << seed << ", step " << step;
      const absl::Status status = call.reply->value().status();
      tally->answered += status.ok();
      tally->evicted += DetailOf(status).reason == kReasonEvicted;
      tally->no_memory += DetailOf(status).reason == kReasonKvMemory;
      tally->failed += DetailOf(status).reason == kReasonPassFailed;
    }
    std::erase_if(open, [](const auto& call) { return call.second.reply->here(); });
  }
  driver.RunAll();
  for (const ReplaySequence& sequence : sequences) {
    EXPECT_THAT(driver.RunClose(sequence.id), IsOk());
  }
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0) << "seed " << seed;
}

TEST(ReplayPropertyTest, ANextDraftIsThatOfAFreshSessionWithTheCommittedTokens) {
  Tally tally;
  for (int seed = 0; seed < 240; ++seed) {
    RunHistory(seed, &tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.answered, 20000);
  EXPECT_GT(tally.evicted, 500);
  EXPECT_GT(tally.no_memory, 100);
  EXPECT_GT(tally.failed, 500);
  EXPECT_GT(tally.forked, 500);
}

// Calls pile up per session and arrive in any order: each session's drafts depend on its own order
// only.
TEST(ArrivalOrderTest, SessionsDraftTheSameInWhateverOrderTheirCallsArrive) {
  constexpr int kSessions = 6;
  constexpr int kCalls = 5;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    EngineOptions options;
    options.max_rows_per_pass = static_cast<int32_t>(1 + seed % 9);
    options.max_sessions_per_pass = static_cast<int32_t>(1 + seed % 4);
    CoreDriver driver(options);
    std::vector<int> order;
    for (int s = 0; s < kSessions; ++s) order.insert(order.end(), kCalls, s);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::string> ids;
    for (int s = 0; s < kSessions; ++s) ids.push_back(driver.OpenSession());
    std::vector<std::vector<ReplyPtr<DraftResult>>> replies(kSessions);
    for (const int s : order) {
      const auto base = static_cast<int64_t>(replies[s].size()) * 2;
      replies[s].push_back(driver.Draft(MakeDraftCall(ids[s], base, {s, static_cast<int32_t>(base)},
                                                      3, static_cast<uint64_t>(s))));
      if (random() % 3 == 0) driver.Pass();
    }
    driver.RunAll();
    for (int s = 0; s < kSessions; ++s) {
      std::vector<int32_t> tokens;
      for (const auto& reply : replies[s]) {
        tokens.insert(tokens.end(), {s, static_cast<int32_t>(tokens.size())});
        const OwnedRows rows = MakeRows(FittingManifest(), 0, static_cast<int64_t>(tokens.size()),
                                        static_cast<uint64_t>(s));
        ASSERT_THAT(reply->value(), IsOk());
        ASSERT_EQ(reply->value()->tree, DraftAlone(tokens, rows.view, 3)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace aerie
