#include "server/guard/guard_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace aerie {
namespace {

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

bool AllPositive(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return v > 0.0f; });
}

// What is wrong with a place; empty when nothing is.
std::string FaultOf(const GuardPlace& place, size_t channels) {
  for (const auto* values : {&place.center, &place.scale, &place.size}) {
    if (values->size() != channels) return "lacks numbers for a channel";
    if (!AllFinite(*values)) return "holds a number that is not finite";
  }
  if (!AllPositive(place.scale) || !AllPositive(place.size)) return "has a spread or size of 0";
  if (!(place.rms > 0.0 && std::isfinite(place.rms))) return "has rows of no size";
  const size_t alternatives = place.alternatives.size();
  for (const GuardAlternative& alternative : place.alternatives) {
    if (alternative.weights.size() != channels) return "lacks a weight for a channel";
    if (!AllFinite(alternative.weights) || !std::isfinite(alternative.offset)) {
      return "holds a weight that is not finite";
    }
    if (alternative.capture == place.capture) return "is its own alternative";
  }
  if (place.landmarks.size() != (alternatives + 1) * alternatives) return "lacks landmarks";
  if (place.landmark_sizes.size() != alternatives + 1) return "lacks sizes of landmarks";
  if (!AllFinite(place.landmarks)) return "has a landmark that is not finite";
  return AllFinite(place.landmark_sizes) && AllPositive(place.landmark_sizes)
             ? ""
             : "has a landmark of no size";
}

}  // namespace

double DraftingExpectation::AcceptLength() const {
  return std::accumulate(acceptance.begin(), acceptance.end(), 1.0);
}

absl::Status GuardProfile::Validate() const {
  std::string fault;
  if (hidden_size <= 0 || channels.empty() || places.empty()) {
    fault = "has no channels or no captures";
  } else if (channels.front() < 0 || channels.back() >= hidden_size ||
             std::adjacent_find(channels.begin(), channels.end(), std::greater_equal<int32_t>()) !=
                 channels.end()) {
    fault = absl::StrCat("has channels that are not ascending below ", hidden_size);
  }
  for (size_t i = 0; i < places.size() && fault.empty(); ++i) {
    fault = FaultOf(places[i], channels.size());
    if (!fault.empty()) fault = absl::StrCat("at ", places[i].capture.ToString(), " ", fault);
  }
  if (fault.empty() && expectation.has_value()) {
    const auto share = [](double v) { return v >= 0.0 && v <= 1.0; };
    const auto& kept = expectation->acceptance;
    if (!share(expectation->accuracy) || !std::isfinite(expectation->log_likelihood) ||
        !std::all_of(kept.begin(), kept.end(), share)) {
      fault = "expects an accuracy outside 0..1";
    }
  }
  if (fault.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the guard's profile ", fault,
                   "; expected what aerie-verify --write-wiring writes; measure the wiring again"));
}

}  // namespace aerie
