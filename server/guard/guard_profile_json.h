// The guard's profile as a JSON object: the member "guard" of wiring.json.
//
//   {"version": 1, "hidden_size": 576, "rows": 2000, "sequences": 12, "channels": [0, 1, ...],
//    "expectation": {"accuracy": 0.38, "log_likelihood": -2.5, "acceptance": [0.38, 0.14]},
//    "places": [{"capture": {"kind": "boundary", "boundary": 2},
//                "center": [...], "scale": [...], "size": [...], "rms": 2.7, "landmarks": [...],
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

// The same, of a head with this wiring and a target of this width, found in wiring.json beside it.
// INVALID_ARGUMENT also when it is of others: it would judge rows by captures that nobody sends.
absl::StatusOr<GuardProfile> GuardProfileOf(absl::string_view text, const Wiring& wiring,
                                            int32_t target_hidden_size);

}  // namespace aerie
