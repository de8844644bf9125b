// wiring.json beside a head: which captures the head was measured to want, and how it did.
//
//   {"version": 1, "verified": true, "weights_digest": "0123456789abcdef",
//    "captures": [{"kind": "boundary", "boundary": 2}, {"kind": "final_norm"}],
//    "convention": "output-of-layer", "verdict": "verified",
//    "expected": {"rows": 1524, "sequences": 12, "mean_log_likelihood": -2.5,
//                 "accuracy": [0.4, 0.3], "acceptance": [0.4, 0.15], "accept_length": 1.55},
//    "tokens_digest": "fedcba9876543210", "fingerprints": [{...}, {...}], "guard": {...}}
//
// What stands behind "captures" may be missing. It speaks of one set of weights: with another
// digest it is refused, not ignored, since somebody believes the wiring to be settled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/layer_ids.h"

namespace aerie {

inline constexpr char kWiringFile[] = "wiring.json";

// How a head did on the recording that it was measured with. Index 0 is draft depth 1.
struct WiringExpectation {
  int64_t rows = 0;  // > 0
  int32_t sequences = 0;
  double mean_log_likelihood = 0.0;  // at depth 1, of tokens in the draft vocabulary, nats
  std::vector<double> accuracy;      // fed the true tokens: the next one is the most likely
  std::vector<double> acceptance;    // fed its own: all down to this depth are right
  double accept_length = 0.0;        // 1 + the sum of `acceptance`

  friend bool operator==(const WiringExpectation&, const WiringExpectation&) = default;
};

// The whole file.
struct WiringMeasurement {
  std::vector<Capture> captures;
  std::string weights_digest;
  std::string convention;  // how the layer ids of config.json turned out to be meant
  std::string verdict;     // of aerie-verify: "verified", "equivalent"
  std::optional<WiringExpectation> expected;
  std::string tokens_digest;              // of the recording
  std::vector<std::string> fingerprints;  // JSON objects, one for each capture; or empty
  // The live guard's profile of the target's rows, a JSON object that only server/guard can read;
  // empty: none was made.
  std::string guard;
};

// What of it settles the wiring question.
MeasuredWiring MeasuredWiringOf(const WiringMeasurement& measurement);

// From the text of the file. nullopt with a complaint when it cannot be used.
std::optional<MeasuredWiring> ReadMeasuredWiring(absl::string_view text,
                                                 const std::string& weights_digest,
                                                 Complaints& complaints);

// The same with everything else that the file says; the guard's profile is not looked into.
std::optional<WiringMeasurement> ReadWiringMeasurement(absl::string_view text,
                                                       const std::string& weights_digest,
                                                       Complaints& complaints);

std::string WiringMeasurementAsJson(const WiringMeasurement& measurement);

// Writes `folder`/wiring.json in one step: readers see the old file or the new one, never a part.
// INTERNAL or PERMISSION_DENIED when it cannot be written; then the old one stays.
absl::Status WriteWiringFile(const std::string& folder, const WiringMeasurement& measurement);

}  // namespace aerie
