// From the layer ids of a config.json to boundaries.
//
// The same id means "output of this layer" to most trainers and "input of this layer" to others,
// and nothing in most files says which. Where neither the producer nor one of the two usual lists
// settles it, somebody has to say or to measure it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/wiring.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

enum class WiringCertainty {
  kCertain,           // the producer's files have one reading, or it was measured
  kByDefaultPattern,  // the usual list in either spelling, or none at all
  kDeclaredByFlag,
  kAmbiguous,  // the wiring is not known
};

// "certain", "by-default-pattern", "declared-by-flag", "ambiguous".
absl::string_view WiringCertaintyName(WiringCertainty certainty);

// What the files claim of the wiring and how sure that is.
struct WiringClaim {
  std::vector<int32_t> ids;  // as in config.json
  std::string convention;    // "input-of-layer", "output-of-layer", "measured", "none", "unknown"
  WiringCertainty certainty = WiringCertainty::kAmbiguous;
};

// Of a wiring.json that says of itself that it was verified.
struct MeasuredWiring {
  std::vector<Capture> captures;
  std::string source;  // "wiring.json"
};

struct WiringQuestion {
  std::optional<std::vector<int32_t>> ids;    // as in config.json; nullopt when it has none
  std::string key;                            // where they stand
  std::optional<LayerIdConvention> flag;      // beats everything
  std::optional<LayerIdConvention> producer;  // when all files of this layout have one reading
  std::string producer_name;
  std::optional<MeasuredWiring> measured;  // beats producer and pattern
  int32_t num_layers = 0;                  // of the target; 0: unknown
};

struct WiringAnswer {
  Sourced<Wiring> wiring;  // of nothing when it is not known
  WiringClaim claim;
};

// The boundaries that every trainer takes when nothing is said: [2, n/2, n-3] of n layers.
std::vector<int32_t> DefaultBoundaries(int32_t num_layers);

// Complains when the ids can be read in two ways, or are impossible. With unknown `num_layers` what
// cannot be told is left open without a complaint.
WiringAnswer ResolveWiring(const WiringQuestion& question, Complaints& complaints);

}  // namespace aerie
