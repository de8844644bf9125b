#include "client/loadtest/session_account.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace aerie::loadtest {

void SessionAccount::Add(const DraftOutcome& outcome, const Verdict& verdict,
                         const HiddenRows& rows, int64_t length) {
  const auto bytes = static_cast<int64_t>(rows.bytes().size());
  const bool at_limit = outcome.no_draft_reason == v1::NO_DRAFT_REASON_CONTEXT_LIMIT;
  if (outcome.status.ok() && outcome.resyncs == 0 && !at_limit) {
    sure_.rows += rows.rows();
    sure_.bytes += bytes;
  } else {
    // Everything may have gone again with every resync. Past the context limit the server takes as
    // many rows as it has room for.
    const int64_t again = at_limit ? rows.rows() : (1 + outcome.resyncs) * length;
    unsure_.rows += again;
    if (rows.rows() > 0) unsure_.bytes += again * (bytes / rows.rows());
  }
  if (outcome.resyncs > 0) resent_ = true;
  if (outcome.tree.size() > 0) {
    ++sure_.proposals;
    sure_.acceptance.Add(outcome.tree.size(), outcome.tree.MaxDepth(), verdict.accepted);
  }
  const absl::Span<const int32_t> committed = verdict.committed.tokens;
  // As the server counts: what follows a proposal is output, what came before it is prompt.
  if (sure_.acceptance.drafts() > 0) {
    sure_.committed_tokens += static_cast<int64_t>(committed.size());
  }
  output_.insert(output_.end(), committed.begin(), committed.end());
  ++unsure_.calls;
}

void SessionAccount::Settle(const std::string& id, const AcceptanceRecord* record, bool failed,
                            WholeStats* whole) {
  CountVariety(whole);
  if (failed || resent_ || record == nullptr) {
    // What it did may have been counted, in part or twice.
    ++whole->sessions_not_compared;
    unsure_.sessions = 1;
    unsure_.committed_tokens = static_cast<int64_t>(output_.size());
    unsure_.rows += sure_.rows;
    unsure_.bytes += sure_.bytes;
    whole->unsure.Merge(unsure_);
    return;
  }
  Compare(id, *record, whole);
  sure_.sessions = 1;
  whole->sure.Merge(sure_);
  whole->unsure.rows += unsure_.rows;
  whole->unsure.bytes += unsure_.bytes;
}

void SessionAccount::Compare(const std::string& id, const AcceptanceRecord& record,
                             WholeStats* whole) const {
  ++whole->sessions_compared;
  const auto compare = [&](const char* what, int64_t ours, int64_t theirs) {
    if (ours == theirs) return;
    whole->AddDifference(absl::StrCat("session ", id, ", ", what, ": the session counted ", ours,
                                      ", the server ", theirs));
  };
  const AcceptanceTally& tally = sure_.acceptance;
  compare("drafts", tally.drafts(), record.spec_steps);
  compare("draft tokens", tally.draft_tokens(), record.draft_tokens);
  compare("accepted draft tokens", tally.accepted_tokens(), record.accepted_draft_tokens);
  compare("committed tokens", sure_.committed_tokens, record.completion_tokens);
  compare("drafts without an outcome", 0, record.unreported_drafts);
}

void SessionAccount::CountVariety(WholeStats* whole) const {
  std::vector<std::array<int32_t, 3>> runs;
  for (size_t i = 0; i + 2 < output_.size(); ++i) {
    runs.push_back({output_[i], output_[i + 1], output_[i + 2]});
  }
  std::sort(runs.begin(), runs.end());
  whole->trigrams += static_cast<int64_t>(runs.size());
  whole->distinct_trigrams += std::unique(runs.begin(), runs.end()) - runs.begin();
}

}  // namespace aerie::loadtest
