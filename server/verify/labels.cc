#include "server/verify/labels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

using Kind = TensorClaim::Kind;

bool ClaimsEmbedding(const TensorClaim& claim) {
  return claim.kind == Kind::kEmbedding || (claim.kind == Kind::kBoundary && claim.boundary == 0);
}

// What the values alone say.
void JudgeByValue(const TensorClaim& claim, ValueFinding finding, const TargetTables& tables,
                  LabelResult& label) {
  const auto set = [&label](bool supported, const char* reason) {
    label.verdict = supported ? LabelVerdict::kSupported : LabelVerdict::kContradicted;
    label.reason = reason;
  };
  if (finding == ValueFinding::kEmbedding) {
    set(ClaimsEmbedding(claim), "its rows are those of the target's embedding table");
  } else if (ClaimsEmbedding(claim) && tables.embedding.has_value()) {
    set(false, "its rows are not those of the target's embedding table");
  } else if (finding == ValueFinding::kFinalNorm) {
    set(claim.kind == Kind::kFinalNorm, "its rows are normed by the target's final norm");
  } else if (claim.kind == Kind::kFinalNorm && !tables.norm_weight.empty()) {
    set(false, "its rows are not normed by the target's final norm");
  }
}

// The place of a tensor in a wiring; -1: it is not in it.
int PlaceOf(const Candidate& candidate, int32_t tensor) {
  const auto found = std::find(candidate.tensors.begin(), candidate.tensors.end(), tensor);
  return found == candidate.tensors.end() ? -1
                                          : static_cast<int>(found - candidate.tensors.begin());
}

// What the verdict on the wiring says of a label that values leave open.
void JudgeByWiring(const LabelEvidence& evidence, int32_t tensor, bool others_lie,
                   LabelResult& label) {
  label.reason = "no test that was made hangs on it";
  if (evidence.reading == nullptr || evidence.best == nullptr) return;
  const int declared = PlaceOf(*evidence.reading->candidate, tensor);
  if (evidence.verdict == Verdict::kVerified && declared >= 0) {
    label.verdict = LabelVerdict::kSupported;
    label.reason = "the head reads it best where its files name this capture";
    return;
  }
  const int wanted = PlaceOf(*evidence.best, tensor);
  if (evidence.verdict != Verdict::kContradicted || wanted == declared || wanted < 0) return;
  const std::string capture = evidence.reading->wiring.captures()[wanted].ToString();
  const bool disputed = std::any_of(
      evidence.rivals.begin(), evidence.rivals.end(),
      [&](const Candidate& rival) { return declared >= 0 && PlaceOf(rival, tensor) == declared; });
  if (disputed) {
    label.reason = "wirings that cannot be told apart disagree about it";
    return;
  }
  if (!others_lie) {
    label.reason = absl::StrCat("the head wants it where its files name ", capture,
                                ": either this label or the head's list is wrong");
    return;
  }
  label.verdict = LabelVerdict::kContradicted;
  label.reason = absl::StrCat("the head wants it where its files name ", capture,
                              ", and values prove other labels of this recording wrong");
}

}  // namespace

std::vector<LabelResult> JudgeLabels(const LabelEvidence& evidence) {
  const CaptureSet& captures = evidence.captures;
  std::vector<LabelResult> labels;
  std::vector<int32_t> tensors;
  bool others_lie = false;
  for (int32_t i = 0; i < static_cast<int32_t>(captures.tensors.size()); ++i) {
    const CaptureTensor& tensor = captures.tensors[i];
    if (tensor.origin != CaptureTensor::Origin::kRecorded || !tensor.claim.has_value()) continue;
    LabelResult label;
    label.tensor = tensor.name;
    label.label = tensor.label;
    label.claim = tensor.claim->ToString();
    if (evidence.tables != nullptr) {
      JudgeByValue(*tensor.claim, FindByValue(captures, i, *evidence.tables), *evidence.tables,
                   label);
    }
    others_lie = others_lie || label.verdict == LabelVerdict::kContradicted;
    labels.push_back(std::move(label));
    tensors.push_back(i);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].verdict == LabelVerdict::kUntested) {
      JudgeByWiring(evidence, tensors[i], others_lie, labels[i]);
    }
  }
  return labels;
}

}  // namespace aerie
