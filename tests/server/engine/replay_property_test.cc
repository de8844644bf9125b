// The property on which everything rests: whatever calls led there, a session's next draft is the
// one that a fresh session gives for the committed tokens alone, in a batch or not.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

// A row as the worker sent it: its token, and which history the hidden state is of.
struct SentRow {
  int32_t token = 0;
  uint64_t variant = 0;
};

// What a worker knows of its sequence.
struct Sequence {
  std::string id;
  Manifest manifest;
  std::vector<SentRow> rows;
  std::vector<int32_t> proposal;  // the last one that is not settled; empty: there is none
  std::vector<int32_t> context;   // all tokens before it
};

// A call under way, with all that its answer must be.
struct Expected {
  ReplyPtr<DraftResult> reply;
  std::vector<SentRow> rows;  // after the call
  Manifest manifest;
  int32_t k = 0;
  bool judged = false;  // whether `accepted` must be set
  int32_t accepted = 0;
};

class Worker {
 public:
  Worker(uint64_t seed, CoreDriver* driver) : random_(seed), driver_(driver) {}

  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Sequence NewSequence() {
    static constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    Sequence sequence;
    sequence.manifest = FittingManifest(FakeSpec(), kDTypes[Draw(0, 2)]);
    sequence.id = driver_->OpenSession(sequence.manifest);
    return sequence;
  }

  // Goes on with a prefix of the last proposal and a token of the target's own, or rolls back.
  Expected Call(Sequence* sequence) {
    Expected expected;
    size_t base = sequence->rows.size();
    std::vector<SentRow> news;
    const uint64_t variant = static_cast<uint64_t>(Draw(0, 1 << 20));
    if (base > 0 && Draw(0, 4) == 0) {
      base = static_cast<size_t>(Draw(0, static_cast<int>(base) - 1));
      // Sometimes what was there is sent again.
      const auto again = static_cast<size_t>(Draw(0, 1)) * (sequence->rows.size() - base);
      news.assign(sequence->rows.begin() + base, sequence->rows.begin() + base + again);
    }
    const size_t resent = news.size();
    int32_t kept = 0;
    if (base + resent == sequence->context.size()) {
      kept = Draw(0, static_cast<int>(sequence->proposal.size()));
    }
    for (int i = 0; i < kept; ++i) news.push_back({sequence->proposal[i], variant});
    for (int i = Draw(0, 4); i > 0; --i) {
      news.push_back({Draw(0, 100), variant + static_cast<uint64_t>(i)});
    }
    sequence->rows.resize(base);
    sequence->rows.insert(sequence->rows.end(), news.begin(), news.end());
    Judge(base, sequence, &expected);

    std::vector<int32_t> tokens;
    std::vector<uint64_t> variants;
    for (const SentRow& row : news) {
      tokens.push_back(row.token);
      variants.push_back(row.variant);
    }
    const OwnedRows rows = MakeRows(sequence->manifest, static_cast<int64_t>(base), variants);
    DraftCall call;
    call.sequence = sequence->id;
    call.base_length = static_cast<int64_t>(base);
    call.tokens = std::move(tokens);
    call.rows = rows.view;
    call.rows_owner = rows.bytes;
    call.k = news.empty() ? 0 : Draw(0, 6);
    expected.k = call.k;
    expected.rows = sequence->rows;
    expected.manifest = sequence->manifest;
    expected.reply = driver_->Draft(std::move(call));
    return expected;
  }

 private:
  // The rule in its plainest form: the rows of the call against what the proposal was made for.
  static void Judge(size_t base, Sequence* sequence, Expected* expected) {
    if (sequence->proposal.empty()) return;
    const std::vector<int32_t>& context = sequence->context;
    bool differs = false;
    for (size_t i = base; i < sequence->rows.size(); ++i) {
      const int32_t token = sequence->rows[i].token;
      if (i < context.size()) {
        differs = differs || token != context[i];
      } else if (i - context.size() < sequence->proposal.size() &&
                 expected->accepted == static_cast<int32_t>(i - context.size())) {
        expected->accepted += token == sequence->proposal[i - context.size()];
      }
    }
    expected->judged = !differs && sequence->rows.size() > context.size();
    if (differs || expected->judged) sequence->proposal.clear();
  }

  std::mt19937_64 random_;
  CoreDriver* const driver_;
};

void Check(const Expected& expected) {
  const auto result = expected.reply->value();
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->length, static_cast<int64_t>(expected.rows.size()));
  std::vector<int32_t> tokens;
  std::vector<uint64_t> variants;
  for (const SentRow& row : expected.rows) {
    tokens.push_back(row.token);
    variants.push_back(row.variant);
  }
  const OwnedRows rows = MakeRows(expected.manifest, 0, variants);
  ASSERT_EQ(result->tree, DraftAlone(tokens, rows.view, expected.k));
  ASSERT_EQ(result->accepted.has_value(), expected.judged);
  if (expected.judged) {
    ASSERT_EQ(*result->accepted, expected.accepted);
  }
}

class ReplayPropertyTest : public ::testing::TestWithParam<int> {};

TEST_P(ReplayPropertyTest, ANextDraftIsThatOfAFreshSessionWithTheCommittedTokens) {
  EngineOptions options;
  options.max_rows_per_pass = 1 + GetParam() % 7;
  options.max_sessions_per_pass = 1 + GetParam() % 5;
  CoreDriver driver(options);
  Worker worker(static_cast<uint64_t>(GetParam()), &driver);
  std::vector<Sequence> sequences;
  for (int i = 0; i < 5; ++i) sequences.push_back(worker.NewSequence());
  std::vector<std::pair<size_t, Expected>> open;
  int answered = 0;

  for (int step = 0; step < 400; ++step) {
    const auto which = static_cast<size_t>(worker.Draw(0, 4));
    const bool busy =
        std::any_of(open.begin(), open.end(), [&](const auto& o) { return o.first == which; });
    if (!busy) {
      if (worker.Draw(0, 30) == 0) {
        EXPECT_THAT(driver.RunClose(sequences[which].id), IsOk());
        sequences[which] = worker.NewSequence();
      }
      open.emplace_back(which, worker.Call(&sequences[which]));
    }
    for (int passes = worker.Draw(0, 3); passes > 0; --passes) driver.Pass();
    if (step % 50 == 49) driver.RunAll();
    for (auto& [index, expected] : open) {
      if (!expected.reply->here()) continue;
      ASSERT_NO_FATAL_FAILURE(Check(expected)) << "step " << step;
      ++answered;
      Sequence& sequence = sequences[index];
      if (expected.k == 0) continue;
      sequence.proposal = expected.reply->value()->tree.tokens;
      sequence.context.clear();
      for (const SentRow& row : sequence.rows) sequence.context.push_back(row.token);
    }
    std::erase_if(open, [](const auto& o) { return o.second.reply->here(); });
  }
  EXPECT_GT(answered, 60);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplayPropertyTest, ::testing::Range(0, 200));

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
