// Which rounds share the next pass, and how many rows each of them gets.
//
// Batching is continuous: a round that arrives joins the next pass, whatever the others are at. So
// a plan is made anew before every pass and nobody waits for another's whole draft. Holds no thread
// and reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace aerie {

struct PassLimits {
  int32_t max_rows = 512;     // extend rows, over all rounds; >= 1
  int32_t max_sessions = 64;  // >= 1
};

struct PassShare {
  size_t candidate = 0;
  int64_t rows = 0;  // extend rows; 0: its one draft row
  friend bool operator==(const PassShare&, const PassShare&) = default;
};

// `extend_rows_left` has one entry a round, in order of arrival: rows it still has to extend by, 0
// when it drafts. The plan keeps that order. Draft rows come first, then the shortest extends; rows
// are shared out max-min fairly, so long prompts get what is left, in equal parts. The oldest round
// is always in the plan: nobody starves.
std::vector<PassShare> PlanPass(absl::Span<const int64_t> extend_rows_left,
                                const PassLimits& limits);

}  // namespace aerie
