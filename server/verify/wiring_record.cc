#include "server/verify/wiring_record.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/recording/fingerprint.h"
#include "server/recording/fingerprint_json.h"

namespace aerie {
namespace {

// Enough to tell neighbouring boundaries apart, little enough for a file that people open.
constexpr int32_t kFingerprintChannels = 64;
// Quantiles of more would not be better, and all rows of a large recording do not fit memory.
constexpr int64_t kFingerprintRows = 8192;

// Empty when no sequence is long enough for a typical row.
std::string FingerprintOf(const CaptureSet& captures, int32_t tensor) {
  int64_t typical = 0;
  for (const CaptureSequence& sequence : captures.sequences) {
    typical += std::max<int64_t>(0, sequence.length() - kFirstTypicalPosition);
  }
  const int64_t stride = typical / kFingerprintRows + 1;
  std::vector<float> values;
  std::vector<float> row(captures.hidden_size);
  for (const CaptureSequence& sequence : captures.sequences) {
    for (int64_t p = kFirstTypicalPosition; p < sequence.length(); p += stride) {
      CopyState(sequence, tensor, p, absl::MakeSpan(row));
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  if (values.empty()) return "";
  return FingerprintToJson(MakeFingerprint(
      values, captures.hidden_size, SpreadChannels(captures.hidden_size, kFingerprintChannels)));
}

}  // namespace

const Reading* ReferenceReading(const VerifyResult& result, const std::vector<Reading>& readings) {
  for (size_t i = 0; i < result.declared.size() && i < readings.size(); ++i) {
    if (result.declared[i].candidate >= 0 && result.declared[i].candidate == result.reference) {
      return &readings[i];
    }
  }
  return nullptr;
}

absl::StatusOr<WiringMeasurement> MeasurementOf(const VerifyResult& result,
                                                const Recording& recording,
                                                const CaptureSet& captures,
                                                const std::vector<Reading>& readings) {
  const Reading* const reading = ReferenceReading(result, readings);
  const bool settled =
      result.verdict == Verdict::kVerified || result.verdict == Verdict::kEquivalent;
  if (!settled || reading == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "wiring.json was not written: the verdict is ", std::string(VerdictName(result.verdict)),
        "; expected verified or equivalent; follow the advice and verify again"));
  }
  const CandidateResult& reference = result.candidates[result.reference];
  WiringMeasurement measurement;
  measurement.captures = reading->wiring.captures();
  measurement.weights_digest = result.drafter_version;
  measurement.convention = reading->convention;
  measurement.verdict = std::string(VerdictName(result.verdict));
  measurement.tokens_digest = recording.TokensDigest();
  if (reference.depths.has_value()) {
    measurement.expected = WiringExpectation{reference.rows,
                                             result.sequences,
                                             reference.mean_log_likelihood,
                                             reference.depths->accuracy,
                                             reference.depths->acceptance,
                                             reference.depths->accept_length};
  }
  for (const int32_t tensor : reading->candidate->tensors) {
    std::string fingerprint = FingerprintOf(captures, tensor);
    if (!fingerprint.empty()) measurement.fingerprints.push_back(std::move(fingerprint));
  }
  return measurement;
}

}  // namespace aerie
