// From a result to the wiring.json that it deserves.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/wiring_file.h"
#include "server/recording/recording.h"
#include "server/verify/capture_set.h"
#include "server/verify/declared.h"
#include "server/verify/verify_result.h"

namespace aerie {

// The reading whose candidate is the reference; null: the reference is nobody's.
const Reading* ReferenceReading(const VerifyResult& result, const std::vector<Reading>& readings);

// Of the reading that is the reference, without the guard's profile. FAILED_PRECONDITION unless the
// verdict is verified or equivalent: a wiring that somebody else's labels make the best is not
// written for a server to believe.
absl::StatusOr<WiringMeasurement> MeasurementOf(const VerifyResult& result,
                                                const Recording& recording,
                                                const CaptureSet& captures,
                                                const std::vector<Reading>& readings);

}  // namespace aerie
