#include "server/verify/declared.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

std::optional<int32_t> FindOrigin(const CaptureSet& captures, CaptureTensor::Origin origin) {
  for (size_t i = 0; i < captures.tensors.size(); ++i) {
    if (captures.tensors[i].origin == origin) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<DeclaredHead> LoadDeclaredHead(const std::string& drafter_folder,
                                              const std::string& target_folder,
                                              const CheckpointOptions& options) {
  DeclaredHead head;
  head.options = options;
  const Inspection inspection = InspectCheckpoint(drafter_folder, target_folder, options);
  const bool ambiguous =
      inspection.resolved && !options.head.layer_ids.has_value() &&
      inspection.checkpoint.wiring_claim.certainty == WiringCertainty::kAmbiguous;
  if (!ambiguous) {
    AERIE_ASSIGN_OR_RETURN(head.checkpoint, LoadCheckpoint(drafter_folder, target_folder, options));
    head.readings.push_back({head.checkpoint.wiring_claim.convention,
                             head.checkpoint.spec.wiring.value, std::nullopt, ""});
    return head;
  }
  // One of the two may be impossible: an output of the last layer but none, or what is wrong with
  // the head besides.
  absl::Status first_failure;
  for (const LayerIdConvention convention :
       {LayerIdConvention::kOutputOfLayer, LayerIdConvention::kInputOfLayer}) {
    CheckpointOptions read_so = options;
    read_so.head.layer_ids = convention;
    absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(drafter_folder, target_folder, read_so);
    if (!checkpoint.ok()) {
      first_failure.Update(checkpoint.status());
      continue;
    }
    head.readings.push_back(
        {checkpoint->wiring_claim.convention, checkpoint->spec.wiring.value, std::nullopt, ""});
    if (head.readings.size() == 1) {
      head.options = std::move(read_so);
      head.checkpoint = *std::move(checkpoint);
    }
  }
  if (head.readings.empty()) return first_failure;
  return head;
}

std::optional<int32_t> FindCapture(const CaptureSet& captures, const Capture& capture) {
  using Kind = TensorClaim::Kind;
  if (capture.kind == Capture::Kind::kFinalNorm) {
    const auto recorded = captures.FindClaim({Kind::kFinalNorm, 0});
    return recorded.has_value() ? recorded
                                : FindOrigin(captures, CaptureTensor::Origin::kTargetNorm);
  }
  if (const auto recorded = captures.FindClaim({Kind::kBoundary, capture.boundary});
      recorded.has_value() || capture.boundary != 0) {
    return recorded;
  }
  const auto embedding = captures.FindClaim({Kind::kEmbedding, 0});
  return embedding.has_value() ? embedding
                               : FindOrigin(captures, CaptureTensor::Origin::kTargetEmbedding);
}

void FindCandidate(const CaptureSet& captures, Reading& reading) {
  Candidate candidate;
  std::vector<std::string> missing;
  for (const Capture& capture : reading.wiring.captures()) {
    if (const auto tensor = FindCapture(captures, capture); tensor.has_value()) {
      candidate.tensors.push_back(*tensor);
    } else {
      missing.push_back(capture.ToString());
    }
  }
  if (!missing.empty()) {
    reading.why_not = absl::StrCat("no one tensor of the recording claims to be ",
                                   absl::StrJoin(missing, ", nor "));
    return;
  }
  reading.candidate = std::move(candidate);
}

}  // namespace aerie
