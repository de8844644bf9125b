// A candidate: which tensors, in which order, with which shift; and how candidates are listed.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/verify/capture_set.h"
#include "server/verify/verify_result.h"

namespace aerie {

struct Candidate {
  std::vector<int32_t> tensors;  // distinct indices into CaptureSet::tensors
  int32_t shift = 0;             // see WiringView

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

// As people see it.
WiringView ViewOf(const Candidate& candidate, const CaptureSet& captures);

// False for a tensor next to what was made of it.
bool IsMeaningful(const Candidate& candidate, const CaptureSet& captures);

// Ordered choices of `size` of `tensors` tensors.
double CountChoices(int32_t tensors, int32_t size);

// All of them that are meaningful, with each shift.
std::vector<Candidate> AllCandidates(const CaptureSet& captures, int32_t size,
                                     absl::Span<const int32_t> shifts);

// What differs from `candidate` in one way: one tensor replaced by another, two exchanged, another
// shift.
std::vector<Candidate> NeighboursOf(const Candidate& candidate, const CaptureSet& captures,
                                    absl::Span<const int32_t> shifts);

// The orders of one choice of tensors; of more than 4 only the exchanges of two and the reverse.
std::vector<Candidate> OrdersOf(const Candidate& candidate);

// Every tensor replaced by the one that claims the boundary `layers` above; nothing when one does
// not claim a boundary or no tensor claims the other.
std::vector<Candidate> MovedByLayers(const Candidate& candidate, const CaptureSet& captures,
                                     absl::Span<const int32_t> layers);

}  // namespace aerie
