// From tests to a verdict.
//
// It is made to be slow to say "verified": that takes a reference that beats *every* other
// candidate beyond doubt, readings of the files that were all tried, and no setting that does
// better. Whatever stands in the way has a verdict of its own.
#pragma once

#include <vector>

#include "server/verify/statistics.h"
#include "server/verify/verify_result.h"

namespace aerie {

// Fills verdict, reason, equivalent, margin, p_value and rows_needed from candidates (with tests
// and standings), reference, best, declared, what_if and sequences.
void Judge(VerifyResult& result, const StatisticsOptions& options);

// Takes back a verified or equivalent wiring when values prove a label of the recording wrong. The
// declared wiring was found by those labels, and two wrong things may agree: ids that are off by a
// layer, and labels that are off by the same.
void DistrustLabels(const std::vector<LabelResult>& labels, VerifyResult& result);

}  // namespace aerie
