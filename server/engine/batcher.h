// Which rounds share the next pass, and how many rows each of them gets.
//
// Batching is continuous: a round that arrives joins the next pass, whatever the others are at. So
// a plan is made anew before every pass and nobody waits for another's whole draft. Holds no thread
// and reads no clock.
//
// What is shared fairly are places and extend rows, and between *clients* first: a client that
// opens more sessions does not get more of them. Its own rounds then share what it got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace aerie {

struct PassLimits {
  int32_t max_rows = 512;        // extend rows, over all rounds; >= 1
  int32_t max_draft_rows = 512;  // over all rounds; a level above it runs without others; >= 1
  int32_t max_sessions = 64;     // >= 1
};

// A round that wants to run.
struct PassCandidate {
  int64_t extend_rows = 0;  // that it still has to extend by; 0: it drafts
  int32_t draft_rows = 1;   // when it drafts: of its next level, which is never divided; >= 1
  int32_t client = 0;       // rounds of one client have equal numbers
  int32_t weight = 1;       // of the client, the same in all its rounds; 1..1000
};

struct PassShare {
  size_t candidate = 0;
  int64_t rows = 0;  // extend rows; 0: its next level of draft rows
  friend bool operator==(const PassShare&, const PassShare&) = default;
};

// `candidates` are in order of arrival, and so is the plan.
//
// The oldest round is always in the plan: nobody starves. The other places go to the clients in
// turn, by weight; a client fills its own with draft rows first, then with its shortest extends.
// Extend rows are shared max-min fairly between clients in proportion to their weights, and within
// a client between its rounds: long prompts get what is left, in equal parts, at least one row
// each.
//
// Shares are whole rows. `pass` counts the passes, and a client that got one row too few for its
// weight gets it in another pass.
std::vector<PassShare> PlanPass(absl::Span<const PassCandidate> candidates,
                                const PassLimits& limits, uint64_t pass);

}  // namespace aerie
