#include "server/engine/session.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "server/engine/tree_growth.h"

namespace aerie {
namespace {

UnreportedReason ReasonOfEnd(SessionEnd end) {
  switch (end) {
    case SessionEnd::kClosed:
      return UnreportedReason::kClosed;
    case SessionEnd::kLease:
      return UnreportedReason::kLease;
    case SessionEnd::kStreamClosed:
      return UnreportedReason::kStreamClosed;
    case SessionEnd::kShutdown:
      return UnreportedReason::kShutdown;
  }
  AERIE_CHECK(false) << "no such end of a session";
}

}  // namespace

Session::Session(Setup setup) : setup_(std::move(setup)) {
  length_ = told_ = high_water_ = start();
  if (setup_.options.adaptive_k) adaptive_.emplace();
}

absl::Span<const int32_t> Session::tokens() const {
  return absl::MakeConstSpan(tokens_).first(static_cast<size_t>(length_ - start()));
}

void Session::BeginWith(absl::Span<const int32_t> tokens, PageTable pages) {
  AERIE_CHECK(tokens_.empty() && length_ == start());
  tokens_.assign(tokens.begin(), tokens.end());
  pages_ = std::move(pages);
  length_ = told_ = high_water_ = known_to();
}

Settlement Session::Commit(int64_t base, absl::Span<const int32_t> tokens,
                           std::optional<int32_t> worker_accepted, absl::Time now) {
  AERIE_CHECK(start() <= base && base <= length_) << base << " of " << length_;
  Settlement settlement;
  Settle(base, tokens, worker_accepted, &settlement);
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t same = 0;
  while (same < count && base + same < known_to() &&
         tokens_[static_cast<size_t>(base + same - start())] == tokens[static_cast<size_t>(same)]) {
    ++same;
  }
  if (same < count) {
    tokens_.resize(static_cast<size_t>(base + same - start()));
    tokens_.insert(tokens_.end(), tokens.begin() + same, tokens.end());
  }
  length_ = told_ = base + count;
  past_limit_ = evicted_ = false;
  CountCommitted(base, count, now, &settlement);
  return settlement;
}

Settlement Session::NoteUntaken(int64_t base, absl::Span<const int32_t> tokens,
                                std::optional<int32_t> worker_accepted, absl::Time now) {
  Settlement settlement;
  Settle(base, tokens, worker_accepted, &settlement);
  const auto count = static_cast<int64_t>(tokens.size());
  told_ = base + count;
  past_limit_ = true;
  CountCommitted(base, count, now, &settlement);
  return settlement;
}

std::optional<UnreportedReason> Session::Propose(const DraftTree& tree) {
  AERIE_CHECK(!tree.empty());
  std::optional<UnreportedReason> lost;
  if (proposal_.has_value()) lost = LoseProposal(UnreportedReason::kRollback);
  // What was known past the rows is of another continuation than this proposal's.
  tokens_.resize(static_cast<size_t>(length_ - start()));
  proposal_ = Proposal{tree, length_};
  drafted_ = true;
  record_.spec_tokens = std::max(record_.spec_tokens, tree.size());
  return lost;
}

void Session::RollBackTo(int64_t base) {
  AERIE_CHECK(start() <= base && base <= length_) << base << " of " << length_;
  length_ = told_ = base;
  past_limit_ = false;
}

void Session::Evict() {
  AERIE_CHECK(pages_.empty());
  length_ = start();
  evicted_ = true;
}

void Session::CountCall(const RoundRecord& record) {
  ++cost_.calls;
  if (record.outcome != absl::StatusCode::kOk) ++cost_.failed_calls;
  cost_.rows += record.rows;
  cost_.bytes += record.bytes;
  cost_.copy_in += record.copy_in;
  cost_.queue += record.queue_wait;
  cost_.extend += record.extend_time;
  cost_.step += record.step_time;
  cost_.total += record.total;
}

SessionFacts Session::Facts() const {
  const SessionOptions& options = setup_.options;
  return {.id = setup_.id,
          .client = options.client,
          .target_id = setup_.target_id,
          .traceparent = options.traceparent,
          .opened = setup_.opened,
          .tree = options.tree.has_value(),
          .sampled = options.temperature > 0,
          .adaptive_k = options.adaptive_k};
}

SessionRecord Session::End(SessionEnd end, absl::Span<const int32_t> final_tokens, absl::Time now) {
  Settlement settlement;
  Settle(told_, final_tokens, std::nullopt, &settlement);
  CountCommitted(told_, static_cast<int64_t>(final_tokens.size()), now, &settlement);
  if (proposal_.has_value()) settlement.unreported = LoseProposal(ReasonOfEnd(end));
  SessionRecord record;
  record.end = end;
  record.acceptance = record_;
  if (first_commit_.has_value()) record.active = last_commit_ - *first_commit_;
  record.final_tokens = settlement.committed_tokens;
  record.judgement = settlement.judgement;
  record.unreported = settlement.unreported;
  record.ended = now;
  record.facts = Facts();
  record.cost = cost_;
  return record;
}

void Session::Settle(int64_t base, absl::Span<const int32_t> tokens,
                     std::optional<int32_t> worker_accepted, Settlement* settlement) {
  if (!proposal_.has_value() || tokens.empty()) return;
  const int64_t row = proposal_->row;
  // A worker runs ahead of our rows only past the context limit, and the call that went there
  // settled the proposal.
  AERIE_CHECK(base <= row) << base << " is past the proposal at " << row;
  AERIE_CHECK(row <= known_to()) << "tokens before it were forgotten";
  const auto resent = std::min(static_cast<int64_t>(tokens.size()), row - base);
  if (!std::equal(tokens.begin(), tokens.begin() + resent, tokens_.begin() + (base - start()))) {
    settlement->unreported = LoseProposal(UnreportedReason::kRollback);
    return;
  }
  const absl::Span<const int32_t> continuation = tokens.subspan(static_cast<size_t>(resent));
  if (continuation.empty()) return;
  const int32_t proposed = proposal_->tree.size();
  const int32_t depth = DepthOf(proposal_->tree);
  const int32_t accepted = proposal_->tree.CountAccepted(continuation);
  settlement->judgement = Judgement{proposed, depth, accepted, worker_accepted};
  record_.Judge(proposed, depth, accepted);
  if (setup_.options.acceptance_detail) record_.KeepStep(proposed, accepted);
  if (adaptive_.has_value()) adaptive_->ObserveProposal(proposed, accepted);
  proposal_.reset();
}

void Session::CountCommitted(int64_t base, int64_t count, absl::Time now, Settlement* settlement) {
  if (count == 0) return;
  const int64_t fresh = std::max<int64_t>(0, base + count - std::max(base, high_water_));
  high_water_ = std::max(high_water_, base + count);
  last_commit_ = now;
  // The clock of a request starts with the call that brings its first proposal: the chunks of a
  // prompt are no output.
  if (!drafted_ || !first_commit_.has_value()) first_commit_ = now;
  if (!drafted_) return;
  settlement->committed_tokens = fresh;
  record_.completion_tokens += fresh;
}

UnreportedReason Session::LoseProposal(UnreportedReason reason) {
  proposal_.reset();
  ++record_.unreported_drafts;
  return reason;
}

}  // namespace aerie
