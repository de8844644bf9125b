#include "server/verify/guard_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/guard/guard_profile_builder.h"
#include "server/guard/guard_profile_json.h"
#include "server/verify/wiring_record.h"

namespace aerie {
namespace {

bool IsContradicted(const VerifyResult& result, const std::string& tensor) {
  return std::any_of(result.labels.begin(), result.labels.end(), [&](const LabelResult& label) {
    return label.tensor == tensor && label.verdict == LabelVerdict::kContradicted;
  });
}

std::optional<Capture> CaptureOf(const TensorClaim& claim) {
  switch (claim.kind) {
    case TensorClaim::Kind::kBoundary:
      return Capture::Boundary(claim.boundary);
    case TensorClaim::Kind::kEmbedding:
      return Capture::Boundary(0);
    case TensorClaim::Kind::kFinalNorm:
      return Capture::FinalNorm();
  }
  return std::nullopt;
}

// Which tensors the profile is made of, and what each is.
struct Chosen {
  std::vector<int32_t> tensors;
  std::vector<Capture> captures;

  void Add(int32_t tensor, const Capture& capture) {
    const bool known = std::find(tensors.begin(), tensors.end(), tensor) != tensors.end() ||
                       std::find(captures.begin(), captures.end(), capture) != captures.end();
    if (known) return;
    tensors.push_back(tensor);
    captures.push_back(capture);
  }
};

Chosen Choose(const VerifyResult& result, const CaptureSet& set, const Reading& reading) {
  Chosen chosen;
  // First, so that no label can take their place.
  for (size_t i = 0; i < reading.candidate->tensors.size(); ++i) {
    chosen.Add(reading.candidate->tensors[i], reading.wiring.captures()[i]);
  }
  for (size_t i = 0; i < set.tensors.size(); ++i) {
    const CaptureTensor& tensor = set.tensors[i];
    if (tensor.origin != CaptureTensor::Origin::kRecorded || !tensor.claim.has_value()) continue;
    if (IsContradicted(result, tensor.name)) continue;
    if (const auto capture = CaptureOf(*tensor.claim)) {
      chosen.Add(static_cast<int32_t>(i), *capture);
    }
  }
  return chosen;
}

}  // namespace

absl::StatusOr<std::string> MakeGuardProfile(const VerifyResult& result, const CaptureSet& captures,
                                             const std::vector<Reading>& readings) {
  const Reading* const reading = ReferenceReading(result, readings);
  if (reading == nullptr || reading->candidate->shift != 0) {
    return absl::FailedPreconditionError(
        "the recording does not show the head's wiring with every state beside its own token; "
        "expected a verified recording without a shift; record it again");
  }
  const Chosen chosen = Choose(result, captures, *reading);
  std::vector<RecordedRows> sequences;
  for (const CaptureSequence& sequence : captures.sequences) {
    RecordedRows& rows = sequences.emplace_back();
    for (const int32_t tensor : chosen.tensors) {
      rows.push_back(sequence.tensors[static_cast<size_t>(tensor)]);
    }
  }
  AERIE_ASSIGN_OR_RETURN(GuardProfile profile,
                         BuildGuardProfile(reading->wiring, chosen.captures, sequences));
  const CandidateResult& reference = result.candidates[static_cast<size_t>(result.reference)];
  if (reference.depths.has_value() && !reference.depths->accuracy.empty()) {
    profile.expectation = DraftingExpectation{.accuracy = reference.depths->accuracy.front(),
                                              .log_likelihood = reference.mean_log_likelihood,
                                              .acceptance = reference.depths->acceptance};
  }
  return GuardProfileToJson(profile);
}

}  // namespace aerie
