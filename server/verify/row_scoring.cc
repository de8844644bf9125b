#include "server/verify/row_scoring.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/status_macros.h"
#include "server/verify/page_plan.h"
#include "server/verify/statistics.h"

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

// Twice what a test needs, since rows left out by the draft vocabulary may empty some.
constexpr size_t kSequencesForStatistics = 2 * kMinSequences;

// An order of `count` things of which any first few are spread over all.
std::vector<size_t> SpreadOrder(size_t count) {
  // Steps by the golden section visit all places, and never two neighbours in a row, when the step
  // has no divisor in common with their number.
  auto step = static_cast<size_t>(0.6180339887 * static_cast<double>(count));
  while (step > 1 && std::gcd(step, count) != 1) --step;
  if (step == 0) step = 1;
  std::vector<size_t> order;
  for (size_t i = 0, at = 0; i < count; ++i, at = (at + step) % count) order.push_back(at);
  return order;
}

// One sequence on its way through the passes.
struct Progress {
  RowRange range;
  int64_t written = 0;  // where its next score goes, in the order of the plan
  absl::Span<const PageId> pages;
  int64_t next = 0;  // row

  // Rows of the next part: it lies either in front of the range or within it, since scores are
  // wanted of all its rows or of none. 0: done.
  int64_t Left() const {
    return (next < range.first ? range.first : range.first + range.count) - next;
  }
};

// A group of sequences that the store holds together.
class GroupRun {
 public:
  GroupRun(DraftModel& model, const CaptureSet& captures, const Candidate& candidate,
           int64_t rows_per_pass, std::vector<Progress> members, RowScores& scores)
      : model_(model),
        captures_(captures),
        candidate_(candidate),
        width_(int64_t{captures.hidden_size} * static_cast<int64_t>(candidate.tensors.size())),
        rows_per_pass_(rows_per_pass),
        members_(std::move(members)),
        scores_(scores) {}

  absl::Status Run() {
    while (true) {
      const Pass pass = NextPass();
      if (pass.batch.empty()) break;
      AERIE_ASSIGN_OR_RETURN(const std::vector<StepOutput> outputs, model_.Step(pass.batch, 1));
      for (size_t i = 0; i < pass.batch.size(); ++i) {
        Keep(pass.batch[i], outputs[i], members_[pass.who[i]]);
      }
    }
    for (size_t i = 0; i < members_.size(); ++i) model_.ReleaseSlot(static_cast<SlotId>(i));
    return absl::OkStatus();
  }

 private:
  struct Pass {
    std::vector<StepSequence> batch;
    std::vector<size_t> who;                 // by part
    std::vector<std::vector<float>> values;  // behind the parts' rows
    std::vector<std::vector<int32_t>> probes;
  };

  // Takes parts until no more rows fit. A sequence goes whole, or in pieces when it fits no pass:
  // pieces of what would fit the next pass cost more than they save.
  Pass NextPass() {
    Pass pass;
    pass.values.reserve(members_.size());
    pass.probes.reserve(members_.size());
    int64_t room = rows_per_pass_;
    for (size_t i = 0; i < members_.size() && room > 0; ++i) {
      const int64_t left = members_[i].Left();
      if (left == 0 || (left > room && !pass.batch.empty())) continue;
      const int64_t count = std::min(left, room);
      AddPart(i, count, pass);
      members_[i].next += count;
      room -= count;
    }
    return pass;
  }

  void AddPart(size_t index, int64_t count, Pass& pass) const {
    const Progress& member = members_[index];
    const CaptureSequence& sequence = captures_.sequences[member.range.sequence];
    pass.values.push_back(AssembleRows(captures_, sequence, candidate_, member.next, count));
    StepSequence part;
    part.slot = static_cast<SlotId>(index);
    part.pages = member.pages;
    part.length = member.next;
    part.tokens = sequence.tokens.subspan(member.next + 1, count);
    part.aux = ViewFloats(pass.values.back(), width_);
    if (member.next >= member.range.first) {
      const absl::Span<const int32_t> following = sequence.tokens.subspan(member.next + 2, count);
      pass.probes.emplace_back(following.begin(), following.end());
      part.outputs = Outputs::kEvery;
      part.probes = pass.probes.back();
    }
    pass.batch.push_back(part);
    pass.who.push_back(index);
  }

  void Keep(const StepSequence& part, const StepOutput& output, Progress& member) {
    for (size_t r = 0; r < part.probes.size(); ++r) {
      const RowOutput& row = output.rows[r];
      const int64_t at = member.written++;
      scores_.log_likelihood[at] = row.finite ? row.probe_log_prob : kNonFiniteLogLikelihood;
      scores_.hit[at] = row.finite && row.top[0].token == part.probes[r] ? 1 : 0;
    }
  }

  DraftModel& model_;
  const CaptureSet& captures_;
  const Candidate& candidate_;
  const int64_t width_;
  const int64_t rows_per_pass_;
  std::vector<Progress> members_;
  RowScores& scores_;
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
  const RowPlan coarse = CoarsePlan(all, max_rows, min_per_sequence);
  RowPlan plan;
  for (const RowRange& range : coarse.ranges) {
    if (range.count > 0) plan.ranges.push_back(range);
  }
  return plan;
}

RowPlan CoarsePlan(const RowPlan& plan, int64_t rows, int64_t min_per_sequence) {
  RowPlan coarse = plan;
  const std::vector<size_t> order = SpreadOrder(plan.ranges.size());
  const size_t wanted = rows / std::max<int64_t>(1, min_per_sequence);
  const size_t taken = std::min(std::max(wanted, kSequencesForStatistics), plan.ranges.size());
  // The same number of rows of each; what short ones leave goes to the longer ones.
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < taken; ++i) lengths.push_back(plan.ranges[order[i]].count);
  std::sort(lengths.begin(), lengths.end());
  int64_t left = rows;
  int64_t each = 1;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t share = left / static_cast<int64_t>(lengths.size() - i);
    each = std::max<int64_t>(1, share);
    if (lengths[i] > share) break;
    left -= lengths[i];
  }
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t& count = coarse.ranges[order[i]].count;
    count = i < taken ? std::min(count, each) : 0;
  }
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
  std::vector<int64_t> needed, offsets;
  for (int64_t offset = 0; const RowRange& range : plan.ranges) {
    needed.push_back(range.count == 0 ? 0 : range.first + range.count);
    offsets.push_back(offset);
    offset += range.count;
  }
  AERIE_ASSIGN_OR_RETURN(const std::vector<PageGroup> groups, PlanPages(model_.kv_store(), needed));
  for (const PageGroup& group : groups) {
    std::vector<Progress> members;
    for (size_t i = 0; i < group.members.size(); ++i) {
      const RowRange& range = plan.ranges[group.members[i]];
      if (range.count > 0) members.push_back({range, offsets[group.members[i]], group.pages[i]});
    }
    AERIE_RETURN_IF_ERROR(
        GroupRun(model_, captures_, candidate, rows_per_pass_, std::move(members), scores).Run());
  }
  return scores;
}

}  // namespace aerie
