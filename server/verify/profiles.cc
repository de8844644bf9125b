#include "server/verify/profiles.h"

#include <algorithm>
#include <cmath>

namespace aerie {
namespace {

double RootMeanSquare(absl::Span<const float> row) {
  double sum = 0.0;
  for (const float value : row) sum += double{value} * value;
  return std::sqrt(sum / static_cast<double>(row.size()));
}

// Of sorted values, the nearest one.
double QuantileOf(const std::vector<double>& sorted, double quantile) {
  if (sorted.empty()) return 0.0;
  return sorted[std::lround(quantile * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

std::vector<TensorProfile> ProfileTensors(const CaptureSet& captures) {
  std::vector<TensorProfile> profiles;
  std::vector<float> row(captures.hidden_size);
  for (int32_t i = 0; i < static_cast<int32_t>(captures.tensors.size()); ++i) {
    const CaptureTensor& tensor = captures.tensors[i];
    if (tensor.origin != CaptureTensor::Origin::kRecorded) continue;
    TensorProfile profile;
    profile.tensor = tensor.name;
    profile.claim = captures.ClaimOf(i);
    if (tensor.claim.has_value() && tensor.claim->kind == TensorClaim::Kind::kBoundary) {
      profile.boundary = tensor.claim->boundary;
    }
    std::vector<double> sizes;
    for (const CaptureSequence& sequence : captures.sequences) {
      for (int64_t position = 0; position < sequence.length(); ++position) {
        CopyState(sequence, i, position, absl::MakeSpan(row));
        sizes.push_back(RootMeanSquare(row));
      }
    }
    std::sort(sizes.begin(), sizes.end());
    for (const double quantile : kProfileQuantiles) {
      profile.rms_quantiles.push_back(QuantileOf(sizes, quantile));
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace aerie
