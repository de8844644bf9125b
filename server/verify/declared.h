// What the head's files declare, as candidates of one recording.
//
// Layer ids that can be read in two ways give two readings, and the data decide between them. A
// reading becomes a candidate by what the recording claims of its tensors; when those claims are
// wrong, so is the candidate, and the verdict says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"
#include "server/verify/candidate.h"
#include "server/verify/capture_set.h"

namespace aerie {

struct Reading {
  std::string convention;  // as in WiringClaim
  Wiring wiring;
  std::optional<Candidate> candidate;  // none: `why_not`
  std::string why_not;
};

// The readings of a head, without candidates: one, or two when its files are ambiguous. Also loads
// the head, with the first of them; `options.ignore_wiring_file` is expected to be set. Fails as
// LoadCheckpoint.
struct DeclaredHead {
  Checkpoint checkpoint;
  CheckpointOptions options;  // with which it was loaded
  std::vector<Reading> readings;
};
absl::StatusOr<DeclaredHead> LoadDeclaredHead(const std::string& drafter_folder,
                                              const std::string& target_folder,
                                              const CheckpointOptions& options);

// Sets `candidate`, or `why_not`.
void FindCandidate(const CaptureSet& captures, Reading& reading);

// The tensor that is this capture, by claim: of boundary 0 also one that claims to be the embedding
// or the target's own, of the final norm also the target's norm of the last boundary.
std::optional<int32_t> FindCapture(const CaptureSet& captures, const Capture& capture);

}  // namespace aerie
