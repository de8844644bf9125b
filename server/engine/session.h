// What is kept of one sequence.
//
// Bookkeeping only: it never touches the model, and its pages are filled and given back by others.
// Two lengths differ on purpose: `length()` tells which rows the pages hold, while tokens past it
// stay known after a rollback or an eviction until other tokens contradict them, so that rows which
// are sent again do not cost the session the judgement of its last proposal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/acceptance_record.h"
#include "common/draft_tree.h"
#include "common/dtype.h"
#include "server/engine/adaptive_k.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "server/engine/kv_pages.h"
#include "server/engine/round_observer.h"

namespace aerie {

// What a call's tokens said about the proposal before it.
struct Settlement {
  std::optional<Judgement> judgement;
  std::optional<UnreportedReason> unreported;
  int64_t committed_tokens = 0;
};

// Engine thread only.
class Session {
 public:
  struct Setup {
    std::string id;  // empty: of a stateless call
    DType dtype = DType::kF32;
    int64_t row_width = 0;
    bool fp8 = false, fused = false;  // as Manifest says
    std::string target_id = {};
    SessionOptions options;  // in force
    VisibleRows visible;     // its start is options.start
    absl::Time opened = {};
  };
  explicit Session(Setup setup);

  const std::string& id() const { return setup_.id; }
  const std::string& target_id() const { return setup_.target_id; }
  DType dtype() const { return setup_.dtype; }
  int64_t row_width() const { return setup_.row_width; }
  bool fp8() const { return setup_.fp8; }
  bool fused() const { return setup_.fused; }
  int32_t max_k() const { return setup_.options.max_k; }
  const SessionOptions& options() const { return setup_.options; }
  const VisibleRows& visible() const { return setup_.visible; }

  // The row behind the last one: the session has rows start() .. length() - 1.
  int64_t length() const { return length_; }
  int64_t start() const { return setup_.visible.start; }
  // Where these rows lie.
  PageTable& pages() { return pages_; }
  const PageTable& pages() const { return pages_; }
  // Of rows start() .. length() - 1.
  absl::Span<const int32_t> tokens() const;
  // What chooses k; nullptr: the calls alone do.
  AdaptiveK* adaptive() { return adaptive_.has_value() ? &*adaptive_ : nullptr; }
  // Whether the last call went past the context limit, so that the worker is ahead of us and knows
  // it.
  bool past_limit() const { return past_limit_; }
  // Whether its rows were taken from it and have not been sent again.
  bool evicted() const { return evicted_; }
  bool has_proposal() const { return proposal_.has_value(); }

  // Begins with rows start() .. start() + tokens.size() - 1 of another session, which lie in
  // `pages`. Of a session that has no rows yet.
  void BeginWith(absl::Span<const int32_t> tokens, PageTable pages);

  // The pages now hold rows start() .. base + tokens.size() - 1, those from `base` on with
  // `tokens`. start() <= base <= length().
  Settlement Commit(int64_t base, absl::Span<const int32_t> tokens,
                    std::optional<int32_t> worker_accepted, absl::Time now);
  // The worker went on with `tokens`, but their rows were not taken: the context limit. base may be
  // ahead.
  Settlement NoteUntaken(int64_t base, absl::Span<const int32_t> tokens,
                         std::optional<int32_t> worker_accepted, absl::Time now);
  // `tree` was drafted at the current length. kRollback when it takes the place of one that was not
  // judged.
  std::optional<UnreportedReason> Propose(const DraftTree& tree);
  // A call that had begun at `base` or later failed: the pages hold the rows before `base`.
  // Proposal and record stay as they were.
  void RollBackTo(int64_t base);
  // The pages were given back. All else stays: the worker may go on once it has sent the rows
  // again.
  void Evict();

  // The last numbered call that was answered; 0: none.
  uint64_t last_seq() const { return last_answer_.seq; }
  const DraftResult& last_answer() const { return last_answer_; }
  void StoreAnswer(const DraftResult& answer) { last_answer_ = answer; }

  // A draft call of it was answered.
  void CountCall(const RoundRecord& record);

  // The end. `final_tokens` follow the tokens of the last call.
  SessionRecord End(SessionEnd end, absl::Span<const int32_t> final_tokens, absl::Time now);

 private:
  struct Proposal {
    DraftTree tree;
    int64_t row = 0;  // the row that a child of its root would have
  };

  // Judges the proposal, or finds it lost, or leaves it for a later call.
  void Settle(int64_t base, absl::Span<const int32_t> tokens,
              std::optional<int32_t> worker_accepted, Settlement* settlement);
  void CountCommitted(int64_t base, int64_t count, absl::Time now, Settlement* settlement);
  UnreportedReason LoseProposal(UnreportedReason reason);
  SessionFacts Facts() const;

  const Setup setup_;
  int64_t known_to() const { return start() + static_cast<int64_t>(tokens_.size()); }

  PageTable pages_;
  std::optional<AdaptiveK> adaptive_;
  // Of rows start() .. length_ - 1 as held; beyond: known from before a rollback.
  std::vector<int32_t> tokens_;
  int64_t length_ = 0;
  bool past_limit_ = false;
  bool evicted_ = false;
  int64_t told_ = 0;        // one past the last row that the worker told of, taken or not
  int64_t high_water_ = 0;  // the highest told_ ever: tokens below it count as committed once
  bool drafted_ = false;
  std::optional<Proposal> proposal_;  // proposal_->row <= known_to()
  DraftResult last_answer_;
  AcceptanceRecord record_;
  SessionCost cost_;
  std::optional<absl::Time> first_commit_;
  absl::Time last_commit_;
};

}  // namespace aerie
