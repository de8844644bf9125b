// The life of one draft call: rollback, extend rows, then draft rows one by one, and the answer.
//
// A round is driven pass by pass and knows nothing of the other rounds in a pass. Until Finish() it
// changes nothing of its session but the rows in the slot, so a pass that fails costs the session
// no more than the rows from base on.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "server/engine/round_observer.h"
#include "server/engine/session.h"

namespace aerie {

// Engine thread only.
class DraftRound {
 public:
  // `call` has been checked against `session` and brings a row at least. `session` and `model` must
  // outlive the round.
  DraftRound(DraftCall call, Session* session, DraftModel* model);

  // Whether a pass has taken rows of it.
  bool begun() const { return begun_; }
  // 0: it drafts.
  int64_t extend_rows_left() const;
  // Nothing is left to run.
  bool complete() const;
  // Whether it drafts and nobody waits for more of the chain: the deadline or a cancel.
  bool ShouldStop(absl::Time now) const;
  // Of a round that has not begun: DEADLINE_EXCEEDED or CANCELLED when it need not.
  absl::Status CheckStillWanted(absl::Time now) const;

  // Its part of the next pass, with so many extend rows; 0: its draft row. Begins the round.
  StepSequence NextPart(int64_t extend_rows, absl::Time now);
  // The pass with that part went well. INTERNAL when the model's output is not to be used.
  absl::Status TakeOutput(const StepOutput& output, absl::Duration pass_time);

  // Commits the rows and the proposal. The slot keeps the committed rows and none of the guesses.
  DraftResult Finish(absl::Time now, RoundRecord* record);
  // Puts slot and session back to the rows before the call; gives the error to answer with.
  absl::Status Fail(const absl::Status& cause, absl::Time now, RoundRecord* record);

 private:
  int64_t end() const { return call_.base_length + static_cast<int64_t>(call_.tokens.size()); }

  DraftCall call_;
  Session* const session_;
  DraftModel* const model_;
  bool begun_ = false;
  int64_t extended_ = 0;
  int64_t part_rows_ = 0;  // extend rows of the pass under way; 0: a draft row
  DraftTree tree_;
  int64_t bytes_ = 0;  // of the hidden states, which are gone by the time the record is written
  DraftTiming timing_;
};

// What is told of a call that was answered with `status` before any pass.
RoundRecord RecordWithoutPass(absl::StatusCode outcome, absl::Time arrival, absl::Time now);

}  // namespace aerie
