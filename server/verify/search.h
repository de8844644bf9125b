// Which candidates are scored, and on how many rows: roughly all, thoroughly the few that matter.
//
// Candidates race. All are scored on few rows; whoever is not far worse than the best beyond doubt
// goes on to four times as many, and so on up to all. Looking several times makes chance findings
// likelier, and the first rows of a text are not like all rows: so leaving early takes a stricter
// test than the verdict's, and close ones are always decided on all rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/verify/candidate.h"
#include "server/verify/row_scores.h"
#include "server/verify/statistics.h"

namespace aerie {

struct SearchOptions {
  int64_t coarse_rows = 512;           // of the first stage, over all sequences; >= 1
  int64_t min_rows_per_sequence = 32;  // see CoarsePlan
  int64_t max_exhaustive = 512;        // up to so many candidates all are scored; else a search
  int64_t max_candidates = 800;        // that a search looks at
  int64_t max_thorough = 256;          // that may be scored on all rows
  std::vector<int32_t> shifts = {0, -1, 1};
  StatisticsOptions statistics;
};

struct ScoredCandidate {
  Candidate candidate;
  int32_t stage = 0;  // whose plan `scores` are of
  RowScores scores;
  double coarse = 0.0;    // mean log-likelihood in the first stage
  bool expanded = false;  // its neighbours were looked at
};

class CandidateSearch {
 public:
  using Scorer =
      std::function<absl::StatusOr<RowScores>(const Candidate& candidate, const RowPlan& plan)>;
  // Told after every candidate: the stage in words, and how far it is.
  using Progress = std::function<void(const std::string& stage, int64_t done, int64_t total)>;

  // `captures` must outlive it. `progress` may be empty.
  CandidateSearch(const CaptureSet& captures, int32_t size, RowPlan plan, SearchOptions options,
                  Scorer scorer, Progress progress);

  // Looks at the declared ones, which are scored on all rows, at `seeds` and at what else seems
  // worth it, then races. Fails as the scorer.
  absl::Status Run(absl::Span<const Candidate> declared, absl::Span<const Candidate> seeds);

  // Scores on more rows whoever is not worse than `reference` beyond doubt.
  absl::Status Settle(int32_t reference);

  const std::vector<ScoredCandidate>& candidates() const { return candidates_; }
  // -1: was never looked at.
  int32_t Find(const Candidate& candidate) const;
  // The highest mean log-likelihood among those scored on all rows with a shift that is tried: a
  // declared candidate may have another.
  int32_t best() const;
  // False of a declared candidate with a shift that is not among those to try.
  bool HasTriedShift(int32_t index) const;
  // Over the rows that both were scored on. Not adjusted.
  PairedTest Compare(int32_t reference, int32_t other) const;
  // Of all candidates against one, adjusted; that of the reference itself is a default.
  std::vector<PairedTest> CompareAll(int32_t reference) const;

  int32_t last_stage() const { return static_cast<int32_t>(plans_.size()) - 1; }
  const RowPlan& plan(int32_t stage) const { return plans_[stage]; }
  bool exhaustive() const { return exhaustive_; }
  double possible() const { return possible_; }

 private:
  absl::Status LookAt(absl::Span<const Candidate> candidates);
  absl::Status Expand(int32_t index);
  absl::Status BestFirst();
  absl::Status Promote(int32_t index, int32_t stage);
  absl::Status PromoteStillInRace(absl::Span<const int32_t> racing, int64_t thorough);
  std::vector<int32_t> ByCoarse() const;  // those with a shift that is tried, best first
  std::vector<float> RowsOfStage(const ScoredCandidate& scored, int32_t stage) const;

  const CaptureSet& captures_;
  const int32_t size_;
  const SearchOptions options_;
  const Scorer scorer_;
  const Progress progress_;
  std::vector<RowPlan> plans_;  // by stage; each holds the rows of the one before
  double possible_ = 0.0;
  bool exhaustive_ = false;
  std::vector<ScoredCandidate> candidates_;
  std::map<Candidate, int32_t> index_;
};

}  // namespace aerie
