#include "client/loadtest/reconciliation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace aerie::loadtest {
namespace {

int64_t At(const std::vector<int64_t>& counts, size_t position) {
  return position < counts.size() ? counts[position] : 0;
}

// What is expected of one counter.
struct Expectation {
  const char* counter;
  std::string label;  // as on the page; empty: all series
  int64_t sure = 0, unsure = 0;
};

std::vector<Expectation> Expectations(const WholeStats& whole, int32_t k) {
  const SureCounts& sure = whole.sure;
  const UnsureCounts& unsure = whole.unsure;
  const AcceptanceTally& tally = sure.acceptance;
  std::vector<Expectation> all = {
      {"aerie_spec_decode_num_drafts_total", "", tally.drafts(), unsure.calls},
      {"aerie_spec_decode_num_draft_tokens_total", "", tally.draft_tokens(), unsure.calls * k},
      {"aerie_spec_decode_num_accepted_tokens_total", "", tally.accepted_tokens(),
       unsure.calls * k},
      {"aerie_committed_tokens_total", "", sure.committed_tokens, unsure.committed_tokens},
      {"aerie_draft_length_tokens_count", "", sure.proposals, unsure.calls},
      {"aerie_hidden_rows_total", "", sure.rows, unsure.rows},
      {"aerie_hidden_bytes_total", "", sure.bytes, unsure.bytes},
      {"aerie_sessions_ended_total", "reason=\"closed\"", sure.sessions, unsure.sessions},
      {"aerie_drafts_unreported_total", "", 0, unsure.calls},
      {"aerie_accept_report_mismatch_total", "", 0, unsure.calls}};
  const size_t positions = std::max(tally.proposed_at().size(), tally.accepted_at().size());
  for (size_t i = 0; i < positions; ++i) {
    const std::string label = absl::StrCat("position=\"", i, "\"");
    all.push_back({"aerie_spec_decode_num_draft_tokens_per_pos_total", label,
                   At(tally.proposed_at(), i), unsure.calls});
    all.push_back({"aerie_spec_decode_num_accepted_tokens_per_pos_total", label,
                   At(tally.accepted_at(), i), unsure.calls});
  }
  return all;
}

}  // namespace

int64_t Reconciliation::differences() const {
  return std::count_if(checks.begin(), checks.end(),
                       [](const CounterCheck& check) { return !check.fits(); });
}

const std::vector<ExcludedCounters>& NotReconciled() {
  static const std::vector<ExcludedCounters> excluded = {
      {"grpc_server_*, aerie_rpc_*_bytes_total",
       "a call may be several messages and tries; the tester also asks what the server is"},
      {"aerie_*_seconds, aerie_batch_sessions",
       "the server's own times and passes have no truth "
       "outside of it"},
      {"aerie_drafts_skipped_total, aerie_rejected_total, aerie_kv_evict*",
       "the server's decisions; what they did to a call is in its answer"},
      {"gauges", "they say how things stand, not what happened"}};
  return excluded;
}

absl::StatusOr<Reconciliation> Reconcile(const MetricsPage& before, const MetricsPage& after,
                                         const WholeStats& whole, int32_t k) {
  Reconciliation result;
  result.done = true;
  for (const Expectation& expected : Expectations(whole, k)) {
    const std::optional<double> then = before.Sum(expected.counter, expected.label);
    const std::optional<double> now = after.Sum(expected.counter, expected.label);
    CounterCheck check;
    check.counter = expected.label.empty()
                        ? expected.counter
                        : absl::StrCat(expected.counter, "{", expected.label, "}");
    if (!then.has_value() || !now.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the metrics page has no ", check.counter,
                       "; expected it, since every counter is there from the start; give the page "
                       "of the server that is under load"));
    }
    if (*now < *then) {
      return absl::FailedPreconditionError(
          absl::StrCat(check.counter, " fell from ", *then, " to ", *now,
                       " during the run; expected a counter to grow; the server was restarted: "
                       "run the test again"));
    }
    check.found = *now - *then;
    check.least = static_cast<double>(expected.sure);
    check.most = static_cast<double>(expected.sure + expected.unsure);
    result.checks.push_back(std::move(check));
  }
  return result;
}

}  // namespace aerie::loadtest
