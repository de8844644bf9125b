// What to do about a verdict, in whose files.
#pragma once

#include <string>
#include <vector>

#include "server/verify/declared.h"
#include "server/verify/target_tables.h"
#include "server/verify/verify_result.h"

namespace aerie {

struct AdviceFacts {
  const VerifyResult& result;  // judged, with labels
  const CaptureSet& captures;
  const Candidate* best = nullptr;
  const Reading* reading = nullptr;      // of the reference
  const TargetTables* tables = nullptr;  // null: no target was given
  int32_t num_layers = 0;                // of the target; 0: not known
};

std::vector<std::string> Advise(const AdviceFacts& facts);

// What a candidate is by what the recording claims; none when a tensor is unlabelled, two claim the
// same, or its states are shifted.
std::optional<Wiring> WiringByClaims(const Candidate& candidate, const CaptureSet& captures,
                                     int32_t num_layers);

// What this recording could not test of a reading: neighbours of its boundaries that it lacks.
std::vector<std::string> LimitsOf(const Reading& reading, const CaptureSet& captures,
                                  int32_t num_layers);

}  // namespace aerie
