// From a recording on disk to what candidates are made of.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"
#include "server/recording/recording.h"
#include "server/verify/capture_set.h"

namespace aerie {

// Views of `recording`, which must outlive the result.
CaptureSet CapturesOf(const Recording& recording);

// FAILED_PRECONDITION when the recording is not of a target that the head fits: widths, layers,
// token ids.
absl::Status CheckFitsHead(const Recording& recording, const Checkpoint& checkpoint);

}  // namespace aerie
