#include "server/verify/search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/verify/row_scoring.h"

namespace aerie {
namespace {

// Best-first search goes on until so many of the best have been expanded.
constexpr int kExpandedBest = 3;
constexpr int64_t kRowsFactor = 4;  // from stage to stage

// Whether a candidate needs no more rows.
bool LeavesRace(const PairedTest& test, const StatisticsOptions& options) {
  constexpr double kStricter = 10.0;
  constexpr double kMargins = 5.0;
  return test.sequences >= kMinSequences && test.p_adjusted < options.alpha / kStricter &&
         test.difference > kMargins * options.margin;
}

}  // namespace

CandidateSearch::CandidateSearch(const CaptureSet& captures, int32_t size, RowPlan plan,
                                 SearchOptions options, Scorer scorer, Progress progress)
    : captures_(captures),
      size_(size),
      options_(std::move(options)),
      scorer_(std::move(scorer)),
      progress_(std::move(progress)) {
  // No stage for less than a third more.
  for (int64_t rows = options_.coarse_rows; rows * 4 < plan.rows() * 3; rows *= kRowsFactor) {
    plans_.push_back(CoarsePlan(plan, rows, options_.min_rows_per_sequence));
  }
  plans_.push_back(std::move(plan));
  possible_ = CountChoices(static_cast<int32_t>(captures.tensors.size()), size) *
              static_cast<double>(options_.shifts.size());
  exhaustive_ = possible_ <= static_cast<double>(options_.max_exhaustive);
}

absl::Status CandidateSearch::Run(absl::Span<const Candidate> declared,
                                  absl::Span<const Candidate> seeds) {
  AERIE_RETURN_IF_ERROR(LookAt(declared));
  AERIE_RETURN_IF_ERROR(LookAt(seeds));
  if (exhaustive_) {
    AERIE_RETURN_IF_ERROR(LookAt(AllCandidates(captures_, size_, options_.shifts)));
  } else {
    // What was declared is compared with everything near it, whatever else is found.
    for (const Candidate& candidate : declared) {
      AERIE_RETURN_IF_ERROR(Expand(Find(candidate)));
    }
    AERIE_RETURN_IF_ERROR(BestFirst());
  }
  if (ByCoarse().empty()) return absl::OkStatus();
  for (const Candidate& candidate : declared) {
    AERIE_RETURN_IF_ERROR(Promote(Find(candidate), last_stage()));
  }
  AERIE_RETURN_IF_ERROR(Promote(ByCoarse()[0], last_stage()));
  // A better one may turn up while it is raced against; then the others race against that one.
  for (int32_t anchor = -1; anchor != best();) {
    anchor = best();
    if (!exhaustive_ && !candidates_[anchor].expanded) AERIE_RETURN_IF_ERROR(Expand(anchor));
    AERIE_RETURN_IF_ERROR(Settle(anchor));
  }
  return absl::OkStatus();
}

absl::Status CandidateSearch::Settle(int32_t reference) {
  AERIE_RETURN_IF_ERROR(Promote(reference, last_stage()));
  while (true) {
    const std::vector<PairedTest> tests = CompareAll(reference);
    std::vector<int32_t> racing;
    int64_t thorough = 0;
    for (int32_t i = 0; i < static_cast<int32_t>(candidates_.size()); ++i) {
      if (candidates_[i].stage == last_stage()) {
        ++thorough;
      } else if (!LeavesRace(tests[i], options_.statistics)) {
        racing.push_back(i);
      }
    }
    if (racing.empty() || thorough >= options_.max_thorough) return absl::OkStatus();
    std::stable_sort(racing.begin(), racing.end(), [&](int32_t a, int32_t b) {
      return tests[a].difference < tests[b].difference;
    });
    AERIE_RETURN_IF_ERROR(PromoteStillInRace(racing, thorough));
  }
}

// One stage at a time, lowest first: most are out before they reach all rows.
absl::Status CandidateSearch::PromoteStillInRace(absl::Span<const int32_t> racing,
                                                 int64_t thorough) {
  int32_t lowest = last_stage();
  for (const int32_t i : racing) lowest = std::min(lowest, candidates_[i].stage);
  const int32_t stage = lowest + 1;
  std::vector<int32_t> promoted;
  for (const int32_t i : racing) {
    if (candidates_[i].stage == lowest) promoted.push_back(i);
  }
  if (const size_t room = options_.max_thorough - thorough;
      stage == last_stage() && promoted.size() > room) {
    promoted.resize(room);
  }
  for (size_t i = 0; i < promoted.size(); ++i) {
    AERIE_RETURN_IF_ERROR(Promote(promoted[i], stage));
    if (progress_) {
      progress_(absl::StrCat("close ones, on ", plans_[stage].rows(), " rows"), i + 1,
                static_cast<int64_t>(promoted.size()));
    }
  }
  return absl::OkStatus();
}

int32_t CandidateSearch::Find(const Candidate& candidate) const {
  const auto found = index_.find(candidate);
  return found == index_.end() ? -1 : found->second;
}

int32_t CandidateSearch::best() const {
  int32_t best = -1;
  for (int32_t i = 0; i < static_cast<int32_t>(candidates_.size()); ++i) {
    if (candidates_[i].stage != last_stage() || !HasTriedShift(i)) continue;
    if (best < 0 || candidates_[i].scores.mean_log_likelihood() >
                        candidates_[best].scores.mean_log_likelihood()) {
      best = i;
    }
  }
  return best;
}

PairedTest CandidateSearch::Compare(int32_t reference, int32_t other) const {
  const int32_t stage = std::min(candidates_[reference].stage, candidates_[other].stage);
  return ComparePaired(plans_[stage], RowsOfStage(candidates_[reference], stage),
                       RowsOfStage(candidates_[other], stage));
}

std::vector<PairedTest> CandidateSearch::CompareAll(int32_t reference) const {
  std::vector<PairedTest> tests(candidates_.size());
  std::vector<PairedTest*> others;
  for (int32_t i = 0; i < static_cast<int32_t>(candidates_.size()); ++i) {
    if (i == reference) continue;
    tests[i] = Compare(reference, i);
    others.push_back(&tests[i]);
  }
  AdjustByHolm(others);
  return tests;
}

absl::Status CandidateSearch::LookAt(absl::Span<const Candidate> candidates) {
  int64_t done = 0;
  for (const Candidate& candidate : candidates) {
    ++done;
    const bool full =
        !exhaustive_ && static_cast<int64_t>(candidates_.size()) >= options_.max_candidates;
    if (full || !index_.emplace(candidate, static_cast<int32_t>(candidates_.size())).second)
      continue;
    AERIE_ASSIGN_OR_RETURN(RowScores scores, scorer_(candidate, plans_[0]));
    const double coarse = scores.mean_log_likelihood();
    candidates_.push_back({candidate, 0, std::move(scores), coarse, false});
    if (progress_) {
      progress_(absl::StrCat("all candidates, on ", plans_[0].rows(), " rows"), done,
                static_cast<int64_t>(candidates.size()));
    }
  }
  return absl::OkStatus();
}

absl::Status CandidateSearch::Expand(int32_t index) {
  candidates_[index].expanded = true;
  const Candidate candidate = candidates_[index].candidate;
  return LookAt(NeighboursOf(candidate, captures_, options_.shifts));
}

absl::Status CandidateSearch::BestFirst() {
  while (static_cast<int64_t>(candidates_.size()) < options_.max_candidates) {
    const std::vector<int32_t> order = ByCoarse();
    const auto end = order.begin() + std::min<size_t>(kExpandedBest, order.size());
    const auto next =
        std::find_if(order.begin(), end, [&](int32_t i) { return !candidates_[i].expanded; });
    if (next == end) return absl::OkStatus();
    AERIE_RETURN_IF_ERROR(Expand(*next));
  }
  return absl::OkStatus();
}

absl::Status CandidateSearch::Promote(int32_t index, int32_t stage) {
  ScoredCandidate& scored = candidates_[index];
  if (scored.stage >= stage) return absl::OkStatus();
  AERIE_ASSIGN_OR_RETURN(scored.scores, scorer_(scored.candidate, plans_[stage]));
  scored.stage = stage;
  return absl::OkStatus();
}

bool CandidateSearch::HasTriedShift(int32_t index) const {
  const std::vector<int32_t>& shifts = options_.shifts;
  return std::find(shifts.begin(), shifts.end(), candidates_[index].candidate.shift) !=
         shifts.end();
}

std::vector<int32_t> CandidateSearch::ByCoarse() const {
  std::vector<int32_t> order;
  for (int32_t i = 0; i < static_cast<int32_t>(candidates_.size()); ++i) {
    if (HasTriedShift(i)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return candidates_[a].coarse > candidates_[b].coarse;
  });
  return order;
}

std::vector<float> CandidateSearch::RowsOfStage(const ScoredCandidate& scored,
                                                int32_t stage) const {
  const RowPlan& from = plans_[scored.stage];
  const RowPlan& to = plans_[stage];
  AERIE_CHECK(from.ranges.size() == to.ranges.size());
  std::vector<float> rows;
  rows.reserve(to.rows());
  auto at = scored.scores.log_likelihood.begin();
  for (size_t i = 0; i < from.ranges.size(); ++i) {
    rows.insert(rows.end(), at, at + to.ranges[i].count);
    at += from.ranges[i].count;
  }
  return rows;
}

}  // namespace aerie
