// Whether the data bear out what a recording calls its tensors.
#pragma once

#include <vector>

#include "server/verify/capture_set.h"
#include "server/verify/declared.h"
#include "server/verify/target_tables.h"
#include "server/verify/verify_result.h"

namespace aerie {

struct LabelEvidence {
  const CaptureSet& captures;
  const TargetTables* tables = nullptr;  // null: no target was given
  const Reading* reading = nullptr;      // the one that is the reference; null: none could be shown
  const Candidate* best = nullptr;       // null: nothing was scored
  std::vector<Candidate> rivals;         // that cannot be told from it
  Verdict verdict = Verdict::kUndecided;  // on the wiring alone
};

// Of every recorded tensor with a claim. Values decide where they can (embedding, final norm); of
// boundaries in between only the verdict speaks.
std::vector<LabelResult> JudgeLabels(const LabelEvidence& evidence);

}  // namespace aerie
