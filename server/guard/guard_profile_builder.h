// Makes the guard's profile from a recording.
//
// The recording should hold many captures, not only those of the wiring: a profile knows only what
// was recorded. Without the neighbours of a boundary, a shift by one layer stays unseen.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/wiring.h"
#include "server/guard/guard_profile.h"

namespace aerie {

// The rows of one sequence, one entry for each recorded capture, each [tokens, hidden_size]. Row p
// is the state of position p.
using RecordedRows = std::vector<HiddenRows>;

// `recorded` are what the recording was *measured* to hold, not what it says. Reads the rows
// several times; some seconds for a thousand channels. INVALID_ARGUMENT: a declared capture was not
// recorded, shapes differ, or there are too few rows.
absl::StatusOr<GuardProfile> BuildGuardProfile(const Wiring& declared,
                                               absl::Span<const Capture> recorded,
                                               absl::Span<const RecordedRows> sequences);

}  // namespace aerie
