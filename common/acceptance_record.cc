#include "common/acceptance_record.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {

void AcceptanceRecord::Judge(int32_t proposed, int32_t accepted) {
  AERIE_CHECK(0 <= accepted && accepted <= proposed) << accepted << " of " << proposed;
  if (acceptance_histogram.size() <= static_cast<size_t>(accepted)) {
    acceptance_histogram.resize(static_cast<size_t>(accepted) + 1);
  }
  ++acceptance_histogram[static_cast<size_t>(accepted)];
  accepted_draft_tokens += accepted;
  draft_tokens += proposed;
  ++spec_steps;
  spec_tokens = std::max(spec_tokens, proposed);
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
