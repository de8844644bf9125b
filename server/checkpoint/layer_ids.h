// From the layer ids of a config.json to boundaries.
//
// The same id means "output of this layer" to most trainers and "input of this layer" to others,
// and nothing in the file says which. Two lists are so common that their meaning is certain; every
// other one needs to be told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/types/span.h"
#include "common/wiring.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

// The boundaries that every trainer takes when nothing is said: [2, n/2, n-3] of n layers.
std::vector<int32_t> DefaultBoundaries(int32_t num_layers);

// `ids`: as in config.json under `key`; nullopt when it has none. `convention`: from a flag, beats
// everything.
Sourced<Wiring> ResolveWiring(const std::optional<std::vector<int32_t>>& ids, absl::string_view key,
                              std::optional<LayerIdConvention> convention, int32_t num_layers,
                              Complaints& complaints);

}  // namespace aerie
