// What adaptive k is told by the worker, and what it tells of its choice.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace aerie {

// What one verification by the target took.
struct VerifyCost {
  absl::Duration time;       // > 0
  int32_t draft_tokens = 0;  // that it verified; 0: a step without a draft
  friend bool operator==(const VerifyCost&, const VerifyCost&) = default;
};

// Why adaptive k chose what it chose. All times are the session's running estimates.
struct KChoice {
  int32_t k = 0;
  float expected_tokens = 0.0f;  // committed by the round, bonus included
  absl::Duration draft_time;     // of the round's draft
  absl::Duration verify_time;
  bool exploring = false;  // chosen to learn, not because it promised most
  friend bool operator==(const KChoice&, const KChoice&) = default;
};

}  // namespace aerie
