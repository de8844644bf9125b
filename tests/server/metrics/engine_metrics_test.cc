// The counters against a real engine: a script with known outcomes is played, and what it did is
// counted here beside it.
#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/engine/draft_engine.h"
#include "server/metrics/prometheus_observer.h"
#include "tests/server/metrics/exposition.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

constexpr int32_t kMaxK = 5;
constexpr int64_t kRowBytes = 3 * 4 * 4;  // captures x width x float32

// What the script did.
struct Tally {
  int64_t drafts = 0, draft_tokens = 0, accepted_tokens = 0, mismatches = 0;
  int64_t draft_tokens_at[kMaxK] = {}, accepted_tokens_at[kMaxK] = {};
  int64_t committed = 0, rows = 0, calls = 0, calls_with_steps = 0, calls_with_rows = 0;
  int64_t made = 0, made_tokens = 0, not_asked = 0, rollbacks = 0;
  int64_t unreported_closed = 0, requests = 0;
};

class EngineMetricsTest : public testing::Test {
 protected:
  struct Worker {
    std::string session;
    int64_t length = 0;
    int32_t last_token = 0;
    bool drafted = false;
    int64_t judged = 0;
    DraftTree proposal;  // empty: none waits for its outcome
  };

  ~EngineMetricsTest() override { engine_.reset(); }

  absl::StatusOr<std::string> TryOpen(Manifest manifest = FittingManifest()) {
    std::promise<absl::StatusOr<OpenResult>> answer;
    engine_->Open(std::move(manifest), {}, [&answer](absl::StatusOr<OpenResult> result) {
      answer.set_value(std::move(result));
    });
    absl::StatusOr<OpenResult> opened = answer.get_future().get();
    if (!opened.ok()) return std::move(opened).status();
    return opened->session_id;
  }

  absl::StatusOr<DraftResult> TryDraft(DraftCall call) {
    std::promise<absl::StatusOr<DraftResult>> answer;
    engine_->Draft(std::move(call), [&answer](absl::StatusOr<DraftResult> result) {
      answer.set_value(std::move(result));
    });
    return answer.get_future().get();
  }

  AcceptanceRecord Close(const Worker& worker, std::vector<int32_t> final_tokens,
                         SessionEnd end = SessionEnd::kClosed) {
    std::promise<absl::StatusOr<AcceptanceRecord>> answer;
    engine_->Close(worker.session, std::move(final_tokens), end,
                   [&answer](absl::StatusOr<AcceptanceRecord> result) {
                     answer.set_value(std::move(result));
                   });
    const absl::StatusOr<AcceptanceRecord> closed = answer.get_future().get();
    EXPECT_TRUE(closed.ok()) << closed.status();
    return closed.ok() ? *closed : AcceptanceRecord();
  }

  Worker Open() {
    const auto session = TryOpen();
    EXPECT_TRUE(session.ok()) << session.status();
    return {.session = session.value_or("")};
  }

  // Sends rows and counts the call; what its tokens mean is counted by the caller.
  void Send(Worker& worker, int64_t base, const std::vector<int32_t>& tokens, int32_t k,
            std::optional<int32_t> says_accepted = std::nullopt) {
    DraftCall call = MakeDraftCall(worker.session, base, tokens, k);
    call.accepted = says_accepted;
    const auto result = TryDraft(std::move(call));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->tree.size(), k);
    worker.length = base + static_cast<int64_t>(tokens.size());
    worker.last_token = tokens.back();
    worker.proposal = result->tree;
    tally_.rows += static_cast<int64_t>(tokens.size());
    ++tally_.calls;
    ++tally_.calls_with_rows;
    if (k == 0) ++tally_.not_asked;
    if (k > 1) ++tally_.calls_with_steps;
    if (k > 0) {
      ++tally_.made;
      tally_.made_tokens += k;
      worker.drafted = true;
    }
  }

  // `accepted` tokens of the proposal and one of the target's own.
  static std::vector<int32_t> Continuation(const Worker& worker, int32_t accepted) {
    const DraftTree& proposal = worker.proposal;
    std::vector<int32_t> tokens(proposal.tokens.begin(), proposal.tokens.begin() + accepted);
    tokens.push_back(accepted < proposal.size() ? (proposal.tokens[accepted] + 1) % 101 : 7);
    return tokens;
  }

  void CountJudged(Worker& worker, int32_t accepted) {
    const int32_t proposed = worker.proposal.size();
    ++tally_.drafts;
    ++worker.judged;
    tally_.draft_tokens += proposed;
    tally_.accepted_tokens += accepted;
    for (int32_t i = 0; i < proposed; ++i) ++tally_.draft_tokens_at[i];
    for (int32_t i = 0; i < accepted; ++i) ++tally_.accepted_tokens_at[i];
  }

  void Add(const AcceptanceRecord& record) {
    sum_.accepted_draft_tokens += record.accepted_draft_tokens;
    sum_.draft_tokens += record.draft_tokens;
    sum_.spec_steps += record.spec_steps;
    sum_.completion_tokens += record.completion_tokens;
    sum_.unreported_drafts += record.unreported_drafts;
    sum_.acceptance_histogram.resize(kMaxK + 1);
    for (size_t i = 0; i < record.acceptance_histogram.size(); ++i) {
      sum_.acceptance_histogram[i] += record.acceptance_histogram[i];
    }
  }

  void ExpectCountersEqualTally(const Exposition& scrape) const;

  PrometheusObserver observer_{{.max_k = kMaxK}};
  std::unique_ptr<DraftEngine> engine_ =
      std::make_unique<DraftEngine>(EngineOptions{.max_k = kMaxK, .max_sessions = 4},
                                    std::make_unique<FakeDraftModel>(), &observer_);
  Tally tally_;
  AcceptanceRecord sum_;  // over the requests, of what closing them answered
};

void EngineMetricsTest::ExpectCountersEqualTally(const Exposition& scrape) const {
  const auto sum = [&scrape](const std::string& name, const Labels& labels = {}) {
    return scrape.Sum("aerie_" + name, labels);
  };
  EXPECT_EQ(sum("spec_decode_num_drafts_total"), tally_.drafts);
  EXPECT_EQ(sum("spec_decode_num_draft_tokens_total"), tally_.draft_tokens);
  EXPECT_EQ(sum("spec_decode_num_accepted_tokens_total"), tally_.accepted_tokens);
  for (int32_t i = 0; i < kMaxK; ++i) {
    const Labels position = {{"position", std::to_string(i)}};
    EXPECT_EQ(sum("spec_decode_num_draft_tokens_per_pos_total", position),
              tally_.draft_tokens_at[i]);
    EXPECT_EQ(sum("spec_decode_num_accepted_tokens_per_pos_total", position),
              tally_.accepted_tokens_at[i]);
  }
  EXPECT_EQ(sum("committed_tokens_total"), tally_.committed);
  EXPECT_EQ(sum("accept_report_mismatch_total"), tally_.mismatches);
  EXPECT_EQ(sum("hidden_rows_total"), tally_.rows);
  EXPECT_EQ(sum("hidden_bytes_total"), tally_.rows * kRowBytes);
  EXPECT_EQ(sum("drafts_skipped_total", {{"reason", "not_asked"}}), tally_.not_asked);
  EXPECT_EQ(sum("drafts_skipped_total"), tally_.not_asked);
  EXPECT_EQ(sum("drafts_unreported_total", {{"reason", "rollback"}}), tally_.rollbacks);
  EXPECT_EQ(sum("drafts_unreported_total", {{"reason", "closed"}}), tally_.unreported_closed);
  EXPECT_EQ(sum("drafts_unreported_total"), tally_.rollbacks + tally_.unreported_closed);
  EXPECT_EQ(sum("draft_length_tokens_count"), tally_.made);
  EXPECT_EQ(sum("draft_length_tokens_sum"), tally_.made_tokens);
  EXPECT_EQ(sum("draft_duration_seconds_count", {{"phase", "queue"}}), tally_.calls);
  EXPECT_EQ(sum("draft_duration_seconds_count", {{"phase", "total"}}), tally_.calls);
  EXPECT_EQ(sum("draft_duration_seconds_count", {{"phase", "extend"}}), tally_.calls_with_rows);
  EXPECT_EQ(sum("draft_duration_seconds_count", {{"phase", "step"}}), tally_.calls_with_steps);
  EXPECT_EQ(sum("request_accept_length_tokens_count"), tally_.requests);
  EXPECT_EQ(sum("request_acceptance_ratio_count"), tally_.requests);
}

TEST_F(EngineMetricsTest, EqualASmallScriptThatCanBeCountedByHand) {
  Worker worker = Open();
  Send(worker, 0, {11, 12, 13}, 4);  // a prompt of three rows; the first draft, of 4
  // Two of four kept, and a bonus token: 3 rows, 3 committed. The worker counted right.
  Send(worker, 3, Continuation(worker, 2), 5, 2);
  // All five kept and the bonus token, but the worker says 4.
  Send(worker, 6, Continuation(worker, 5), 3, 4);
  // None of three kept; the bonus token alone ends the request.
  Add(Close(worker, Continuation(worker, 0)));

  const Exposition scrape(*observer_.metrics());
  const auto sum = [&scrape](const std::string& name, const Labels& labels = {}) {
    return scrape.Sum("aerie_" + name, labels);
  };
  EXPECT_EQ(sum("spec_decode_num_drafts_total"), 3);
  EXPECT_EQ(sum("spec_decode_num_draft_tokens_total"), 12);
  EXPECT_EQ(sum("spec_decode_num_accepted_tokens_total"), 7);
  const int proposed[kMaxK] = {3, 3, 3, 2, 1}, accepted[kMaxK] = {2, 2, 1, 1, 1};
  for (int i = 0; i < kMaxK; ++i) {
    const Labels position = {{"position", std::to_string(i)}};
    EXPECT_EQ(sum("spec_decode_num_draft_tokens_per_pos_total", position), proposed[i]);
    EXPECT_EQ(sum("spec_decode_num_accepted_tokens_per_pos_total", position), accepted[i]);
  }
  EXPECT_EQ(sum("committed_tokens_total"), 10);  // accepted and bonus: 7 + 3
  EXPECT_EQ(sum("accept_report_mismatch_total"), 1);
  EXPECT_EQ(sum("hidden_rows_total"), 12);
  EXPECT_EQ(sum("hidden_bytes_total"), 12 * kRowBytes);
  EXPECT_EQ(sum("drafts_unreported_total"), 0);
  EXPECT_EQ(sum("sessions_ended_total", {{"reason", "closed"}}), 1);
  EXPECT_EQ(sum("sessions"), 0);
  EXPECT_EQ(sum("queue_depth"), 0);
  EXPECT_EQ(sum("inflight"), 0);
  EXPECT_EQ(sum("request_accept_length_tokens_count"), 1);
  EXPECT_NEAR(sum("request_accept_length_tokens_sum"), 1 + 7.0 / 3, 1e-12);
  EXPECT_NEAR(sum("request_acceptance_ratio_sum"), 7.0 / 12, 1e-12);
  // Passes: one for each prompt or commit, and one for each draft token but the first of a draft.
  EXPECT_EQ(sum("batch_sessions_count"), 3 + 3 + 4 + 2);
  EXPECT_EQ(sum("batch_sessions_sum"), 3 + 3 + 4 + 2);
}

TEST_F(EngineMetricsTest, EqualALongRandomScriptAndTheSumOverItsRequests) {
  std::mt19937 random(20240611);
  const auto pick = [&random](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  constexpr int kRequests = 60;
  for (int request = 0; request < kRequests; ++request) {
    Worker worker = Open();
    std::vector<int32_t> prompt(static_cast<size_t>(pick(2, 9)));
    for (int32_t& token : prompt) token = pick(0, 100);
    if (pick(0, 1) == 0) Send(worker, 0, {pick(0, 100)}, 0);  // a chunk, without a draft
    Send(worker, worker.length, prompt, pick(1, kMaxK));
    for (int round = pick(0, 12); round > 0; --round) {
      if (worker.proposal.empty()) {
        // A target that went on alone: committed, and nothing to judge.
        Send(worker, worker.length, {pick(0, 100)}, pick(1, kMaxK));
        tally_.committed += 1;
      } else if (pick(0, 9) == 0) {
        // The last row is replaced, so the draft is lost; one of the two tokens is new.
        const int32_t other = (worker.last_token + 1 + pick(0, 99)) % 101;
        if (other == worker.last_token) continue;
        Send(worker, worker.length - 1, {other, pick(0, 100)}, pick(0, kMaxK));
        tally_.rollbacks += 1;
        tally_.committed += 1;
      } else {
        const int32_t accepted = pick(0, worker.proposal.size());
        const std::vector<int32_t> tokens = Continuation(worker, accepted);
        const int32_t says = pick(-2, kMaxK);  // below 0: nothing
        if (says >= 0 && says != accepted) tally_.mismatches += 1;
        CountJudged(worker, accepted);
        tally_.committed += accepted + 1;
        Send(worker, worker.length, tokens, pick(0, kMaxK),
             says < 0 ? std::nullopt : std::optional<int32_t>(says));
      }
      if (HasFatalFailure()) return;
    }
    if (!worker.proposal.empty() && pick(0, 2) > 0) {
      const int32_t accepted = pick(0, worker.proposal.size());
      CountJudged(worker, accepted);
      tally_.committed += accepted + 1;
      Add(Close(worker, Continuation(worker, accepted)));
    } else {
      if (!worker.proposal.empty()) tally_.unreported_closed += 1;
      Add(Close(worker, {}));
    }
    if (worker.judged > 0) tally_.requests += 1;
  }
  ASSERT_GT(tally_.rollbacks, 5);
  ASSERT_GT(tally_.mismatches, 5);
  ASSERT_GT(tally_.unreported_closed, 5);

  const Exposition scrape(*observer_.metrics());
  ExpectCountersEqualTally(scrape);
  EXPECT_EQ(scrape.Sum("aerie_sessions_ended_total", {{"reason", "closed"}}), kRequests);

  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_drafts_total"), sum_.spec_steps);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_draft_tokens_total"), sum_.draft_tokens);
  EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_total"), sum_.accepted_draft_tokens);
  EXPECT_EQ(scrape.Sum("aerie_committed_tokens_total"), sum_.completion_tokens);
  EXPECT_EQ(scrape.Sum("aerie_drafts_unreported_total"), sum_.unreported_drafts);
  // Position i was accepted in every step that kept more than i tokens.
  int64_t above = 0;
  for (int32_t i = kMaxK - 1; i >= 0; --i) {
    above += sum_.acceptance_histogram[i + 1];
    EXPECT_EQ(scrape.Sum("aerie_spec_decode_num_accepted_tokens_per_pos_total",
                         {{"position", std::to_string(i)}}),
              above);
  }
}

TEST_F(EngineMetricsTest, CountRefusalsByReasonAndNothingElseOfThem) {
  Worker worker = Open();
  Send(worker, 0, {11, 12, 13}, 4);
  const Exposition before(*observer_.metrics());

  EXPECT_FALSE(TryDraft(MakeDraftCall(worker.session, 3, {1}, kMaxK + 1)).ok());
  EXPECT_FALSE(TryDraft(MakeDraftCall(worker.session, 3, {101}, 1)).ok());
  DraftCall late = MakeDraftCall(worker.session, 3, {1}, 1);
  late.deadline = absl::UnixEpoch();
  EXPECT_FALSE(TryDraft(std::move(late)).ok());
  Manifest other = FittingManifest();
  other.num_layers += 1;
  EXPECT_FALSE(TryOpen(other).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(TryOpen().ok());
  EXPECT_FALSE(TryOpen().ok());  // the fifth of four

  const Exposition after(*observer_.metrics());
  const auto rejected = [&after](const char* reason) {
    return after.Sum("aerie_rejected_total", {{"reason", reason}});
  };
  EXPECT_EQ(rejected("shape"), 2);
  EXPECT_EQ(rejected("deadline"), 1);
  EXPECT_EQ(rejected("wiring"), 1);
  EXPECT_EQ(rejected("quota"), 1);
  EXPECT_EQ(after.Sum("aerie_rejected_total"), 5);
  for (const char* name :
       {"aerie_hidden_rows_total", "aerie_hidden_bytes_total", "aerie_committed_tokens_total",
        "aerie_spec_decode_num_drafts_total", "aerie_drafts_unreported_total",
        "aerie_drafts_skipped_total", "aerie_draft_duration_seconds_count",
        "aerie_draft_length_tokens_count", "aerie_batch_sessions_count"}) {
    EXPECT_EQ(after.Sum(name), before.Sum(name)) << name;
  }
}

TEST_F(EngineMetricsTest, TellTheEndsOfSessionsApart) {
  Worker with_stream = Open(), forgotten = Open();
  Send(with_stream, 0, {1, 2}, 2);
  Send(forgotten, 0, {3, 4, 5}, 3);
  EXPECT_EQ(Exposition(*observer_.metrics()).Sum("aerie_sessions"), 2);
  Close(with_stream, {}, SessionEnd::kStreamClosed);
  engine_.reset();
  const Exposition scrape(*observer_.metrics());
  for (const char* name : {"aerie_sessions_ended_total", "aerie_drafts_unreported_total"}) {
    EXPECT_EQ(scrape.Sum(name, {{"reason", "stream_closed"}}), 1) << name;
    EXPECT_EQ(scrape.Sum(name, {{"reason", "shutdown"}}), 1) << name;
    EXPECT_EQ(scrape.Sum(name), 2) << name;
  }
  EXPECT_EQ(scrape.Sum("aerie_sessions"), 0);
  EXPECT_EQ(scrape.Sum("aerie_request_accept_length_tokens_count"), 0);
}

}  // namespace
}  // namespace aerie
