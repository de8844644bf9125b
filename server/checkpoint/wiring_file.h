// wiring.json beside a head: which captures the head was measured to want.
//
//   {"version": 1, "verified": true, "weights_digest": "0123456789abcdef",
//    "captures": [{"kind": "boundary", "boundary": 2}, {"kind": "final_norm"}]}
//
// It speaks of one set of weights: with another digest it is refused, not ignored, since somebody
// believes the wiring to be settled.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/layer_ids.h"

namespace aerie {

inline constexpr char kWiringFile[] = "wiring.json";

// From the text of the file. nullopt with a complaint when it cannot be used.
std::optional<MeasuredWiring> ReadMeasuredWiring(absl::string_view text,
                                                 const std::string& weights_digest,
                                                 Complaints& complaints);

}  // namespace aerie
