#include "common/wiring.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {

std::string Capture::ToString() const {
  return kind == Kind::kFinalNorm ? "final norm" : absl::StrCat("boundary ", boundary);
}

absl::StatusOr<Wiring> Wiring::Create(std::vector<Capture> captures, int32_t num_layers) {
  if (captures.empty()) {
    return absl::InvalidArgumentError(
        "the capture list is empty; expected at least one boundary; name the captures in the "
        "order in which they are concatenated");
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    const Capture& capture = captures[i];
    if (capture.kind == Capture::Kind::kBoundary &&
        (capture.boundary < 0 || capture.boundary > num_layers)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "capture ", i, " is boundary ", capture.boundary, "; expected 0..", num_layers,
          " for a target of ", num_layers, " layers; check the layer ids and their convention"));
    }
    const auto first = std::find(captures.begin(), captures.end(), capture);
    if (first != captures.begin() + static_cast<std::ptrdiff_t>(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("captures ", first - captures.begin(), " and ", i, " are both ",
                       capture.ToString(), "; expected distinct captures; name each place once"));
    }
  }
  return Wiring(std::move(captures));
}

absl::StatusOr<Wiring> Wiring::FromLayerIds(absl::Span<const int32_t> ids,
                                            LayerIdConvention convention, int32_t num_layers) {
  std::vector<Capture> captures;
  captures.reserve(ids.size());
  for (const int32_t id : ids) {
    // An id names a layer, whichever side of it is meant, so it is below num_layers under the
    // output convention; under the input convention the id num_layers names the output of the last
    // layer.
    const int32_t highest =
        convention == LayerIdConvention::kOutputOfLayer ? num_layers - 1 : num_layers;
    if (id < 0 || id > highest) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer id ", id, " leaves the target; expected 0..", highest, " for ",
                       num_layers, " layers; check the target folder and the layer id convention"));
    }
    captures.push_back(
        Capture::Boundary(convention == LayerIdConvention::kOutputOfLayer ? id + 1 : id));
  }
  return Create(std::move(captures), num_layers);
}

std::string Wiring::ToString() const {
  return absl::StrCat("[",
                      absl::StrJoin(captures_, ", ",
                                    [](std::string* out, const Capture& capture) {
                                      if (capture.kind == Capture::Kind::kFinalNorm) {
                                        absl::StrAppend(out, "final_norm");
                                      } else {
                                        absl::StrAppend(out, capture.boundary);
                                      }
                                    }),
                      "]");
}

}  // namespace aerie
