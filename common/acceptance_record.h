// How the drafts of one request fared; the sums over requests equal the exported counters.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

struct AcceptanceRecord {
  std::vector<int64_t> acceptance_histogram;  // [a]: proposals of which a tokens were kept
  int64_t accepted_draft_tokens = 0;
  int64_t draft_tokens = 0;       // proposed, over the judged proposals
  int64_t spec_steps = 0;         // judged proposals
  int32_t spec_tokens = 0;        // largest k proposed
  int64_t completion_tokens = 0;  // committed after the first proposal, bonus included
  int64_t unreported_drafts = 0;  // proposals whose outcome never came

  // A proposal of `proposed` tokens of which the target kept `accepted`. 0 <= accepted <= proposed.
  void Judge(int32_t proposed, int32_t accepted);

  // 1 + accepted / steps: bonus included, the field's convention. 0 without a judged proposal.
  double MeanAcceptLength() const;
  // accepted / proposed, 0..1. 0 without a judged proposal.
  double AcceptanceRate() const;

  friend bool operator==(const AcceptanceRecord&, const AcceptanceRecord&) = default;
};

}  // namespace aerie
