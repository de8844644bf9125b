// How the drafts of one request fared; the sums over requests equal the exported counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aerie {

// How records that are read beside those of other engines name ours.
inline constexpr char kEngineName[] = "aerie";

struct AcceptanceRecord {
  std::vector<int64_t> acceptance_histogram;  // [a]: proposals of which a tokens were kept
  // [d]: judged proposals of d levels. At position i, from 1 on, a token was kept as often as the
  // first histogram has entries from i on, out of the entries that this one has from i on.
  std::vector<int64_t> depth_histogram;
  int64_t accepted_draft_tokens = 0;
  int64_t draft_tokens = 0;       // proposed, over the judged proposals: all nodes of a tree
  int64_t spec_steps = 0;         // judged proposals
  int32_t spec_tokens = 0;        // largest k proposed
  int64_t completion_tokens = 0;  // committed after the first proposal, bonus included
  int64_t unreported_drafts = 0;  // proposals whose outcome never came
  // Of each judged proposal in order, when KeepStep() was called for it: tokens kept and proposed.
  std::vector<int32_t> per_step_accepted, per_step_drafted;

  // A chain of `proposed` tokens of which the target kept `accepted`. 0 <= accepted <= proposed.
  void Judge(int32_t proposed, int32_t accepted) { Judge(proposed, proposed, accepted); }
  // A tree of `proposed` nodes on `depth` levels, of which the target kept a path of `accepted`.
  // 0 <= accepted <= depth <= proposed.
  void Judge(int32_t proposed, int32_t depth, int32_t accepted);

  // Beside Judge(), of sessions that want the steps one by one. A session may go back as often as
  // it likes, so the steps past the first kMostSteps are counted and not kept.
  static constexpr size_t kMostSteps = 16384;
  void KeepStep(int32_t proposed, int32_t accepted);

  // 1 + accepted / steps: bonus included, the field's convention. 0 without a judged proposal.
  double MeanAcceptLength() const;
  // accepted / proposed, 0..1, where a tree counts with all its nodes. 0 without a judged proposal.
  double AcceptanceRate() const;

  friend bool operator==(const AcceptanceRecord&, const AcceptanceRecord&) = default;
};

}  // namespace aerie
