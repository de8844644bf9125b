// From a verified recording to the live guard's profile, for wiring.json.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/verify/capture_set.h"
#include "server/verify/declared.h"
#include "server/verify/verify_result.h"

namespace aerie {

// As JSON, of the reading that is the reference. The head's own captures are those that were
// measured; of the other tensors the labels are believed unless the data contradict them, since
// values between two boundaries name nothing by themselves. INVALID_ARGUMENT: too few rows for a
// profile. FAILED_PRECONDITION: the recording's states stand beside other tokens than the head
// wants, so that its rows are not those of a worker.
absl::StatusOr<std::string> MakeGuardProfile(const VerifyResult& result, const CaptureSet& captures,
                                             const std::vector<Reading>& readings);

}  // namespace aerie
