#include "server/verify/depth_scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/check.h"
#include "common/status_macros.h"
#include "server/verify/page_plan.h"
#include "server/verify/row_scoring.h"

namespace aerie {
namespace {

constexpr float kOutside = -std::numeric_limits<float>::infinity();

// The chains of one sequence.
struct Member {
  const ChainStarts* starts = nullptr;
  const CaptureSequence* sequence = nullptr;
  absl::Span<const PageId> pages;
  int64_t offset = 0;    // of its first chain in the plan
  int64_t extended = 0;  // rows that the draft KV holds

  int64_t RowOf(size_t chain) const { return starts->rows[chain]; }
  bool Has(size_t chain) const { return chain < starts->rows.size(); }
};

// Runs the chains of a group of sequences side by side: the n-th of each together.
class GroupRun {
 public:
  GroupRun(DraftModel& model, const CaptureSet& captures, const Candidate& candidate,
           int64_t rows_per_pass, std::vector<Member> members, ChainScores& scores)
      : model_(model),
        captures_(captures),
        candidate_(candidate),
        width_(int64_t{captures.hidden_size} * candidate.tensors.size()),
        rows_per_pass_(rows_per_pass),
        members_(std::move(members)),
        scores_(scores) {}

  absl::Status Run() {
    for (size_t chain = 0; AnyHas(chain); ++chain) {
      AERIE_RETURN_IF_ERROR(Extend(chain));
      for (size_t depth = 1; depth < scores_.depths.size(); ++depth) {
        AERIE_RETURN_IF_ERROR(Draft(chain, depth));
      }
    }
    for (size_t i = 0; i < members_.size(); ++i) model_.ReleaseSlot(static_cast<SlotId>(i));
    return absl::OkStatus();
  }

 private:
  bool AnyHas(size_t chain) const {
    return std::any_of(members_.begin(), members_.end(),
                       [chain](const Member& member) { return member.Has(chain); });
  }

  // Brings every sequence to the row that its chain begins behind, in as many passes as that takes.
  absl::Status Extend(size_t chain) {
    while (true) {
      std::vector<StepSequence> batch;
      std::vector<size_t> who;
      std::vector<std::vector<float>> values;
      values.reserve(members_.size());
      std::vector<int32_t> probes(members_.size());
      int64_t room = rows_per_pass_;
      for (size_t i = 0; i < members_.size() && room > 0; ++i) {
        Member& member = members_[i];
        if (!member.Has(chain)) continue;
        const int64_t end = member.RowOf(chain) + 1;
        const int64_t count = std::min(end - member.extended, room);
        if (count == 0) continue;
        values.push_back(
            AssembleRows(captures_, *member.sequence, candidate_, member.extended, count));
        StepSequence part = PartOf(i, member.extended);
        part.tokens = member.sequence->tokens.subspan(member.extended + 1, count);
        part.aux = ViewFloats(values.back(), width_);
        member.extended += count;
        room -= count;
        if (member.extended == end) {
          probes[i] = member.sequence->tokens[end + 1];
          part.outputs = Outputs::kLast;
          part.probes = {&probes[i], 1};
        }
        batch.push_back(part);
        who.push_back(i);
      }
      if (batch.empty()) return absl::OkStatus();
      AERIE_RETURN_IF_ERROR(Step(batch, who, chain, 0));
    }
  }

  // One draft row behind each chain, fed the true token.
  absl::Status Draft(size_t chain, size_t depth) {
    std::vector<StepSequence> batch;
    std::vector<size_t> who;
    const int32_t parent = static_cast<int32_t>(depth) - 2;  // the draft row before; -1: the root
    std::vector<int32_t> probes(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].Has(chain)) continue;
      const int64_t row = members_[i].RowOf(chain);
      const absl::Span<const int32_t> tokens = members_[i].sequence->tokens;
      StepSequence part = PartOf(i, row + 1);
      part.tokens = tokens.subspan(row + 1 + depth, 1);
      part.parents = {&parent, 1};
      probes[i] = tokens[row + 2 + depth];
      part.outputs = Outputs::kEvery;
      part.probes = {&probes[i], 1};
      batch.push_back(part);
      who.push_back(i);
    }
    return Step(batch, who, chain, depth);
  }

  StepSequence PartOf(size_t member, int64_t length) const {
    StepSequence part;
    part.slot = static_cast<SlotId>(member);
    part.pages = members_[member].pages;
    part.length = length;
    return part;
  }

  absl::Status Step(absl::Span<const StepSequence> batch, const std::vector<size_t>& who,
                    size_t chain, size_t depth) {
    AERIE_ASSIGN_OR_RETURN(const std::vector<StepOutput> outputs, model_.Step(batch, 1));
    for (size_t b = 0; b < batch.size(); ++b) {
      if (batch[b].outputs == Outputs::kNone) continue;
      const RowOutput& row = outputs[b].rows.at(0);
      const int64_t at = members_[who[b]].offset + static_cast<int64_t>(chain);
      RowScores& scores = scores_.depths[depth];
      scores.log_likelihood[at] = row.finite ? row.probe_log_prob : kNonFiniteLogLikelihood;
      scores.hit[at] = row.finite && row.top[0].token == batch[b].probes[0] ? 1 : 0;
    }
    return absl::OkStatus();
  }

  DraftModel& model_;
  const CaptureSet& captures_;
  const Candidate& candidate_;
  const int64_t width_;
  const int64_t rows_per_pass_;
  std::vector<Member> members_;
  ChainScores& scores_;
};

}  // namespace

int64_t ChainPlan::size() const {
  int64_t size = 0;
  for (const ChainStarts& one : starts) size += static_cast<int64_t>(one.rows.size());
  return size;
}

RowPlan ChainPlan::AsRowPlan() const {
  RowPlan plan;
  for (const ChainStarts& one : starts) {
    plan.ranges.push_back({one.sequence, 0, static_cast<int64_t>(one.rows.size())});
  }
  return plan;
}

ChainPlan PlanChains(const CaptureSet& captures, const RowPlan& plan, int32_t depth,
                     int64_t max_starts) {
  AERIE_CHECK(depth >= 1);
  const int64_t stride = std::max<int64_t>(1, (plan.rows() + max_starts - 1) / max_starts);
  ChainPlan chains;
  chains.depth = depth;
  for (const RowRange& range : plan.ranges) {
    // The last token asked for is that of position row + 1 + depth.
    const int64_t end = std::min(range.first + range.count,
                                 captures.sequences[range.sequence].length() - 1 - depth);
    ChainStarts starts{range.sequence, {}};
    for (int64_t row = range.first; row < end; row += stride) starts.rows.push_back(row);
    if (!starts.rows.empty()) chains.starts.push_back(std::move(starts));
  }
  return chains;
}

DepthScores ChainScores::Summary() const {
  DepthScores summary;
  summary.starts = depths.empty() ? 0 : static_cast<int64_t>(depths[0].hit.size());
  if (summary.starts == 0) return summary;
  std::vector<uint8_t> right(summary.starts, 1);
  summary.accept_length = 1.0;
  for (const RowScores& scores : depths) {
    summary.accuracy.push_back(scores.accuracy());
    summary.log_likelihood.push_back(scores.mean_log_likelihood());
    int64_t accepted = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      right[i] = right[i] & scores.hit[i];
      accepted += right[i];
    }
    summary.acceptance.push_back(static_cast<double>(accepted) /
                                 static_cast<double>(summary.starts));
    summary.accept_length += summary.acceptance.back();
  }
  return summary;
}

std::vector<float> ChainScores::MeanLogLikelihoods() const {
  const size_t starts = depths.empty() ? 0 : depths[0].hit.size();
  std::vector<float> means(starts, kOutside);
  for (size_t i = 0; i < starts; ++i) {
    double sum = 0.0;
    int count = 0;
    for (const RowScores& scores : depths) {
      if (std::isinf(scores.log_likelihood[i])) continue;
      sum += scores.log_likelihood[i];
      ++count;
    }
    if (count > 0) means[i] = static_cast<float>(sum / count);
  }
  return means;
}

absl::StatusOr<ChainScores> ChainScorer::Score(const Candidate& candidate, const ChainPlan& plan) {
  ChainScores scores;
  scores.depths.resize(plan.depth);
  for (RowScores& depth : scores.depths) {
    depth.log_likelihood.resize(plan.size());
    depth.hit.resize(plan.size());
  }
  std::vector<int64_t> needed, offsets;
  for (int64_t offset = 0; const ChainStarts& starts : plan.starts) {
    needed.push_back(starts.rows.back() + plan.depth);  // extend rows and draft rows
    offsets.push_back(offset);
    offset += static_cast<int64_t>(starts.rows.size());
  }
  AERIE_ASSIGN_OR_RETURN(const std::vector<PageGroup> groups, PlanPages(model_.kv_store(), needed));
  for (const PageGroup& group : groups) {
    std::vector<Member> members;
    for (size_t i = 0; i < group.members.size(); ++i) {
      const ChainStarts& starts = plan.starts[group.members[i]];
      members.push_back({&starts, &captures_.sequences[starts.sequence], group.pages[i],
                         offsets[group.members[i]], 0});
    }
    AERIE_RETURN_IF_ERROR(
        GroupRun(model_, captures_, candidate, rows_per_pass_, std::move(members), scores).Run());
  }
  return scores;
}

}  // namespace aerie
