#include "server/verify/row_scoring.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/status_macros.h"
#include "server/verify/page_plan.h"

namespace aerie {
namespace {

// The rows of a sequence that can be scored.
RowRange ScorableRows(const CaptureSet& captures, int32_t index) {
  const CaptureSequence& sequence = captures.sequences[index];
  // The row that predicts the first generated token but one: the first is sampled by the target
  // before the drafter is ever asked.
  const int64_t first = std::max<int64_t>(1, sequence.prompt_tokens.value_or(0) - 1);
  return {index, first, std::max<int64_t>(0, sequence.length() - 2 - first)};
}

// One sequence on its way through the passes.
struct Progress {
  RowRange range;
  int64_t next = 0;     // row
  int64_t written = 0;  // scores, in the order of the plan
  absl::Span<const PageId> pages;

  bool done() const { return next == range.first + range.count; }
  // Rows of the next part: it lies either in front of the range or within it, since scores are
  // wanted of all its rows or of none.
  int64_t Left() const {
    return (next < range.first ? range.first : range.first + range.count) - next;
  }
};

}  // namespace

RowPlan PlanRows(const CaptureSet& captures, int64_t max_rows, int64_t min_per_sequence) {
  RowPlan all;
  for (int32_t i = 0; i < static_cast<int32_t>(captures.sequences.size()); ++i) {
    if (const RowRange range = ScorableRows(captures, i); range.count > 0) {
      all.ranges.push_back(range);
    }
  }
  if (all.rows() <= max_rows) return all;
  const int64_t wanted = std::max<int64_t>(1, max_rows / std::max<int64_t>(1, min_per_sequence));
  const int64_t available = static_cast<int64_t>(all.ranges.size());
  const int64_t taken = std::min(available, wanted);
  RowPlan plan;
  for (int64_t i = 0; i < taken; ++i) plan.ranges.push_back(all.ranges[i * available / taken]);
  return CoarsePlan(plan, max_rows);
}

RowPlan CoarsePlan(const RowPlan& plan, int64_t rows) {
  // The same number of rows of each; what short ones leave goes to the longer ones.
  std::vector<int64_t> lengths;
  for (const RowRange& range : plan.ranges) lengths.push_back(range.count);
  std::sort(lengths.begin(), lengths.end());
  int64_t left = rows;
  int64_t each = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t share = left / static_cast<int64_t>(lengths.size() - i);
    each = std::max<int64_t>(1, share);
    if (lengths[i] > share) break;
    left -= lengths[i];
  }
  RowPlan coarse = plan;
  for (RowRange& range : coarse.ranges) range.count = std::min(range.count, each);
  return coarse;
}

std::vector<float> AssembleRows(const CaptureSet& captures, const CaptureSequence& sequence,
                                const Candidate& candidate, int64_t first, int64_t count) {
  const size_t width = captures.hidden_size;
  std::vector<float> values(count * candidate.tensors.size() * width);
  float* out = values.data();
  for (int64_t row = first; row < first + count; ++row) {
    for (const int32_t tensor : candidate.tensors) {
      CopyState(sequence, tensor, row + candidate.shift, absl::MakeSpan(out, width));
      out += width;
    }
  }
  return values;
}

absl::StatusOr<RowScores> RowScorer::Score(const Candidate& candidate, const RowPlan& plan) {
  RowScores scores;
  scores.log_likelihood.resize(plan.rows());
  scores.hit.resize(plan.rows());
  std::vector<int64_t> needed;
  for (const RowRange& range : plan.ranges) needed.push_back(range.first + range.count);
  AERIE_ASSIGN_OR_RETURN(const std::vector<PageGroup> groups, PlanPages(model_.kv_store(), needed));
  std::vector<int64_t> offsets;
  for (int64_t offset = 0; const RowRange& range : plan.ranges) {
    offsets.push_back(offset);
    offset += range.count;
  }
  const int64_t width = int64_t{captures_.hidden_size} * candidate.tensors.size();
  for (const PageGroup& group : groups) {
    std::vector<Progress> members;
    for (size_t i = 0; i < group.members.size(); ++i) {
      members.push_back(
          {plan.ranges[group.members[i]], 0, offsets[group.members[i]], group.pages[i]});
    }
    while (true) {
      std::vector<StepSequence> batch;
      std::vector<size_t> who;
      std::vector<std::vector<float>> values;
      std::vector<std::vector<int32_t>> probes;
      values.reserve(members.size());
      probes.reserve(members.size());
      int64_t room = options_.rows_per_pass;
      for (size_t i = 0; i < members.size() && room > 0; ++i) {
        Progress& member = members[i];
        const int64_t left = member.done() ? 0 : member.Left();
        // Whole or, when it fits no pass, in pieces: pieces of what would fit the next pass cost
        // more than they save.
        if (left == 0 || (left > room && !batch.empty())) continue;
        const int64_t count = std::min(left, room);
        const CaptureSequence& sequence = captures_.sequences[member.range.sequence];
        values.push_back(AssembleRows(captures_, sequence, candidate, member.next, count));
        StepSequence part;
        part.slot = static_cast<SlotId>(i);
        part.pages = member.pages;
        part.length = member.next;
        part.tokens = sequence.tokens.subspan(member.next + 1, count);
        part.aux = ViewFloats(values.back(), width);
        if (member.next >= member.range.first) {
          const auto next = sequence.tokens.subspan(member.next + 2, count);
          probes.emplace_back(next.begin(), next.end());
          part.outputs = Outputs::kEvery;
          part.probes = probes.back();
        }
        batch.push_back(part);
        who.push_back(i);
        member.next += count;
        room -= count;
      }
      if (batch.empty()) break;
      AERIE_ASSIGN_OR_RETURN(const std::vector<StepOutput> outputs, model_.Step(batch, 1));
      for (size_t b = 0; b < batch.size(); ++b) {
        if (batch[b].outputs != Outputs::kEvery) continue;
        for (size_t r = 0; r < batch[b].probes.size(); ++r) {
          const RowOutput& row = outputs[b].rows[r];
          const int64_t at = members[who[b]].written++;
          scores.log_likelihood[at] = row.finite ? row.probe_log_prob : kNonFiniteLogLikelihood;
          scores.hit[at] = row.finite && row.top[0].token == batch[b].probes[r] ? 1 : 0;
        }
      }
    }
    for (size_t i = 0; i < members.size(); ++i) model_.ReleaseSlot(static_cast<SlotId>(i));
  }
  return scores;
}

}  // namespace aerie
