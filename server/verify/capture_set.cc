#include "server/verify/capture_set.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {

std::string CaptureSet::ClaimOf(int32_t tensor) const {
  const std::optional<TensorClaim>& claim = tensors[tensor].claim;
  return claim.has_value() ? claim->ToString() : "unlabelled";
}

std::optional<int32_t> CaptureSet::FindClaim(const TensorClaim& claim) const {
  std::optional<int32_t> found;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].origin != CaptureTensor::Origin::kRecorded || tensors[i].claim != claim) {
      continue;
    }
    if (found.has_value()) return std::nullopt;
    found = static_cast<int32_t>(i);
  }
  return found;
}

void CopyState(const CaptureSequence& sequence, int32_t tensor, int64_t position,
               absl::Span<float> out) {
  AERIE_CHECK(sequence.length() > 0);
  const int64_t row = std::clamp<int64_t>(position, 0, sequence.length() - 1);
  sequence.tensors[tensor].Slice(row, 1).CopyToFloat(out);
}

HiddenRows ViewFloats(const std::vector<float>& values, int64_t width) {
  const auto rows =
      HiddenRows::Create(DType::kF32, static_cast<int64_t>(values.size()) / width, width,
                         std::string_view(reinterpret_cast<const char*>(values.data()),
                                          values.size() * sizeof(float)));
  AERIE_CHECK(rows.ok()) << "the rows are made to measure";
  return *rows;
}

}  // namespace aerie
