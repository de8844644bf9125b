// The life of one draft call: rollback, extend rows, then draft rows level by level, and the
// answer.
//
// A round is driven pass by pass and knows nothing of the other rounds in a pass. All pages that it
// will write are put by when it begins, so it never fails for want of memory once it has changed
// something. Until Finish() it changes nothing of its session but the rows in the pages, so a pass
// that fails costs the session no more than the rows from base on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "server/engine/kv_pages.h"
#include "server/engine/round_observer.h"
#include "server/engine/row_observer.h"
#include "server/engine/session.h"
#include "server/engine/slot_pool.h"
#include "server/engine/tree_growth.h"

namespace aerie {

// What all rounds share. All of it outlives them.
struct RoundTools {
  const EngineOptions& options;
  DraftModel& model;
  KvPages& pages;
  SlotPool& slots;
};

// Engine thread only.
class DraftRound {
 public:
  // `call` has been checked against `session` and brings a row at least. `session` and `watch` must
  // outlive the round; nobody watches: null.
  DraftRound(DraftCall call, Session* session, RowWatch* watch, const RoundTools& tools);

  // Whether it has begun to change something.
  bool begun() const { return begun_; }
  // 0: it drafts.
  int64_t extend_rows_left() const;
  // When it drafts: the rows of its next level.
  int32_t draft_rows() const;
  // Most likely tokens that it reads of each of its outputs.
  int32_t tokens_read() const { return growth_ == nullptr ? 1 : growth_->tokens_read(); }
  // Nothing is left to run.
  bool complete() const;
  // Whether it drafts and nobody waits for more of the draft: the deadline or a cancel.
  bool ShouldStop(absl::Time now) const;
  // Of a round that has not begun: DEADLINE_EXCEEDED or CANCELLED when it need not.
  absl::Status CheckStillWanted(absl::Time now) const;

  // Free pages that Begin() takes, which must be there.
  int64_t FreshPages() const;
  void Begin(absl::Time now);
  // Its part of the next pass, with so many extend rows; 0: its next level of draft rows.
  StepSequence NextPart(int64_t extend_rows);
  // The pass with that part went well. INTERNAL or INVALID_ARGUMENT when the model's output is not
  // to be used.
  absl::Status TakeOutput(const StepOutput& output, absl::Duration pass_time, absl::Time now);

  // Commits the rows and the proposal. The pages keep the committed rows and none of the guesses.
  DraftResult Finish(absl::Time now, RoundRecord* record);
  // Puts pages and session back to rows before the call; gives the error to answer with.
  absl::Status Fail(const absl::Status& cause, absl::Time now, RoundRecord* record);

 private:
  int64_t end() const { return call_.base_length + static_cast<int64_t>(call_.tokens.size()); }
  // Chooses k, where that is left to us, and sets up the growth of so many tokens.
  void PlanDraft();
  // Lets adaptive k learn from the draft that was made.
  void ObserveDraft(int32_t drafted);
  absl::Status CheckOutput(const RowOutput& row) const;
  // Gives back what the round had for itself. The session has rows up to `length`.
  void LetGo(int64_t length);

  DraftCall call_;
  Session* const session_;
  RowWatch* const watch_;
  const RoundTools tools_;
  std::optional<KChoice> choice_;       // of a session with adaptive_k
  std::unique_ptr<TreeGrowth> growth_;  // nullptr: k is 0, or it has not begun
  int64_t most_draft_rows_ = 0;
  bool begun_ = false;
  SlotId slot_ = 0;
  int64_t extended_ = 0;
  int64_t drafted_ = 0;    // draft rows
  int64_t part_rows_ = 0;  // extend rows of the pass under way; 0: draft rows
  int64_t bytes_ = 0;      // of the hidden states, which are gone by the time the record is written
  DraftTiming timing_;
};

}  // namespace aerie
