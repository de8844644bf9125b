// What the votes of one source say together.
//
// Medians over votes, not means: a minority of odd texts has no say. All of it is recomputed with
// every vote from the votes that are kept, so that a source that was mended is believed again.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/wiring_report.h"
#include "server/guard/guard_profile.h"
#include "server/guard/guard_thresholds.h"
#include "server/guard/row_sketch.h"

namespace aerie {

enum class FindingLevel { kNone, kSuspect, kWrong };

struct Findings {
  FindingLevel level = FindingLevel::kNone;
  std::string verdict;  // empty with kNone
  int64_t votes = 0;    // weighed: those that are not odd
  std::vector<PlaceReport> places;
  std::optional<double> one_layer_earlier, one_layer_later;
  std::optional<AlignmentReport> alignment;
};

// True when the vote's rows are like no recorded capture.
bool IsOdd(const RowVote& vote, const GuardThresholds& thresholds);

Findings WeighVotes(const GuardProfile& profile, const GuardThresholds& thresholds,
                    const std::deque<RowVote>& votes);

}  // namespace aerie
