#include "common/acceptance_record.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {
namespace {

void CountIn(int32_t value, std::vector<int64_t>* histogram) {
  const auto entry = static_cast<size_t>(value);
  if (histogram->size() <= entry) histogram->resize(entry + 1);
  ++(*histogram)[entry];
}

}  // namespace

void AcceptanceRecord::Judge(int32_t proposed, int32_t depth, int32_t accepted) {
  AERIE_CHECK(0 <= accepted && accepted <= depth && depth <= proposed)
      << accepted << " of " << depth << " levels, " << proposed << " nodes";
  CountIn(accepted, &acceptance_histogram);
  CountIn(depth, &depth_histogram);
  accepted_draft_tokens += accepted;
  draft_tokens += proposed;
  ++spec_steps;
  spec_tokens = std::max(spec_tokens, proposed);
}

void AcceptanceRecord::KeepStep(int32_t proposed, int32_t accepted) {
  if (per_step_accepted.size() == kMostSteps) return;
  per_step_accepted.push_back(accepted);
  per_step_drafted.push_back(proposed);
}

double AcceptanceRecord::MeanAcceptLength() const {
  if (spec_steps == 0) return 0.0;
  return 1.0 + static_cast<double>(accepted_draft_tokens) / static_cast<double>(spec_steps);
}

double AcceptanceRecord::AcceptanceRate() const {
  if (draft_tokens == 0) return 0.0;
  return static_cast<double>(accepted_draft_tokens) / static_cast<double>(draft_tokens);
}

}  // namespace aerie
