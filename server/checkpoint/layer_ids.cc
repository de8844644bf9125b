#include "server/checkpoint/layer_ids.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {
namespace {

std::string Listed(absl::Span<const int32_t> ids) {
  return absl::StrCat("[", absl::StrJoin(ids, ", "), "]");
}

std::vector<int32_t> Shifted(std::vector<int32_t> ids, int32_t by) {
  for (int32_t& id : ids) id += by;
  return ids;
}

absl::string_view NameOf(LayerIdConvention convention) {
  return convention == LayerIdConvention::kInputOfLayer ? "input-of-layer" : "output-of-layer";
}

}  // namespace

std::vector<int32_t> DefaultBoundaries(int32_t num_layers) {
  return {2, num_layers / 2, num_layers - 3};
}

Sourced<Wiring> ResolveWiring(const std::optional<std::vector<int32_t>>& ids, absl::string_view key,
                              std::optional<LayerIdConvention> convention, int32_t num_layers,
                              Complaints& complaints) {
  const std::vector<int32_t> usual = DefaultBoundaries(num_layers);
  const std::vector<int32_t> read = ids.value_or(usual);
  std::string source;
  LayerIdConvention reading = LayerIdConvention::kInputOfLayer;
  if (!ids.has_value()) {
    source = "default: [2, n/2, n-3] of the target's layers";
  } else if (convention.has_value()) {
    reading = *convention;
    source = absl::StrCat("config.json: ", key, " ", Listed(read), ", read as ", NameOf(reading),
                          " by flag --layer-ids");
  } else if (read == Shifted(usual, -1)) {
    reading = LayerIdConvention::kOutputOfLayer;
    source = absl::StrCat("config.json: ", key, " ", Listed(read),
                          ", read as output-of-layer since it is [1, n/2-1, n-4]");
  } else if (read == usual) {
    source = absl::StrCat("config.json: ", key, " ", Listed(read),
                          ", read as input-of-layer since it is [2, n/2, n-3]");
  } else {
    complaints.Add(absl::StrCat(
        "config.json: ", key, " ", Listed(read), " may mean boundaries ", Listed(read),
        " (input of these layers) or ", Listed(Shifted(read, 1)),
        " (output of these layers); expected ", Listed(Shifted(usual, -1)), " or ", Listed(usual),
        " of a target with ", num_layers,
        " layers, or to be told; ask the head's producer and set --layer-ids=input-of-layer or "
        "--layer-ids=output-of-layer"));
    return {};
  }
  // Engines capture in ascending order whatever the list says, so the order of any other list is
  // anyone's guess.
  if (!std::is_sorted(read.begin(), read.end())) {
    complaints.Add(
        absl::StrCat("the wiring (", source, ") names ", Listed(read),
                     ", not in ascending order; expected ascending ids, the order in which engines "
                     "concatenate; sort them if the head was trained so"));
    return {};
  }
  absl::StatusOr<Wiring> wiring = Wiring::FromLayerIds(read, reading, num_layers);
  if (!wiring.ok()) {
    complaints.Add(
        absl::StrCat("the wiring (", source, ") is impossible: ", wiring.status().message()));
    return {};
  }
  return {*std::move(wiring), std::move(source)};
}

}  // namespace aerie
