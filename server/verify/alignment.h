// Whether the rows of a recording belong to the tokens that they stand beside, by their values
// alone.
//
// Scores cannot tell. The state of the very token that a drafter is fed knows what the target says
// next: shifted rows that hold it draft about as well as right ones, though no drafter ever has
// them. But states resemble embeddings: early ones that of their own token, late ones that of the
// token they predict. Where both kinds are recorded, their places are those of two neighbouring
// tokens, and the first is the state's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/verify/capture_set.h"
#include "server/verify/target_tables.h"
#include "server/verify/verify_result.h"

namespace aerie {

// Of all recorded tensors. Nothing is found in fewer than kMinSequences sequences, or without an
// embedding.
Alignment AlignByValue(const CaptureSet& captures, const TargetTables& tables);

// The shifts that candidates may have: the one at which states meet the token that follows them,
// where it is known, and staler ones; never states of the fed token itself.
std::vector<int32_t> ShiftsToTry(const Alignment& alignment);

}  // namespace aerie
