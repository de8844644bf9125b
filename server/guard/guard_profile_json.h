// The guard's profile as a JSON object: the member "guard" of wiring.json.
//
//   {"version": 1, "hidden_size": 576, "rows": 2000, "sequences": 12, "channels": [0, 1, ...],
//    "expectation": {"accuracy": 0.38, "log_likelihood": -2.5, "acceptance": [0.38, 0.14]},
//    "places": [{"capture": {"kind": "boundary", "boundary": 2},
//                "center": [...], "scale": [...], "size": [...], "landmarks": [...],
//                "landmark_sizes": [...], "alternatives": [{"capture": {...}, "told_apart": true,
//                "offset": 0.1,
//                                  "unit": 0.0001, "weights": "BASE64"}]}]}
//
// Weights are many and need few digits: base64 of little-endian int16, in units of `unit`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/guard/guard_profile.h"

namespace aerie {

std::string GuardProfileToJson(const GuardProfile& profile);

// INVALID_ARGUMENT when the text is anything else, of another version, or fails Validate().
absl::StatusOr<GuardProfile> GuardProfileFromJson(absl::string_view text);

}  // namespace aerie
