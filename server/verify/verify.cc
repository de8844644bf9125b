#include "server/verify/verify.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/verify/advice.h"
#include "server/verify/alignment.h"
#include "server/verify/depth_scoring.h"
#include "server/verify/labels.h"
#include "server/verify/profiles.h"
#include "server/verify/row_scoring.h"
#include "server/verify/verdict.h"

namespace aerie {
namespace {

class Verification {
 public:
  Verification(const VerifyInput& input, const VerifyOptions& options, const ModelLoader& load,
               const CandidateSearch::Progress& progress)
      : input_(input), options_(options), load_(load), progress_(progress) {}

  absl::StatusOr<VerifyResult> Run() {
    AERIE_RETURN_IF_ERROR(CheckInput());
    if (input_.tables.has_value()) {
      result_.alignment = AlignByValue(input_.captures, *input_.tables);
    }
    AERIE_ASSIGN_OR_RETURN(std::unique_ptr<DraftModel> model, load_(input_.options));
    AERIE_RETURN_IF_ERROR(Search(*model));
    ListCandidates();
    AERIE_RETURN_IF_ERROR(ScoreDepths(*model));
    model.reset();  // one head at a time in memory
    AERIE_RETURN_IF_ERROR(TrySettings());
    Conclude();
    return std::move(result_);
  }

 private:
  absl::Status CheckInput() {
    const auto tensors = static_cast<int32_t>(input_.captures.tensors.size());
    if (tensors < input_.num_captures) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the head takes ", input_.num_captures, " captures and the recording has ", tensors,
          " tensors; expected at least as many; record what the head needs and a few more"));
    }
    plan_ = PlanRows(input_.captures, options_.max_rows, options_.min_rows_per_sequence);
    if (plan_.rows() == 0) {
      return absl::InvalidArgumentError(
          "the recording has no row to score; expected sequences with at least 4 tokens, of which "
          "2 "
          "were generated; record longer ones");
    }
    return absl::OkStatus();
  }

  absl::Status Search(DraftModel& model) {
    RowScorer scorer(model, input_.captures, {options_.rows_per_pass});
    SearchOptions search_options = options_.search;
    search_options.shifts = ShiftsToTry(result_.alignment);
    search_.emplace(
        input_.captures, input_.num_captures, plan_, search_options,
        [&scorer](const Candidate& candidate, const RowPlan& plan) {
          return scorer.Score(candidate, plan);
        },
        progress_);
    std::vector<Candidate> declared;
    for (const Reading& reading : input_.readings) {
      if (reading.candidate.has_value()) declared.push_back(*reading.candidate);
    }
    AERIE_RETURN_IF_ERROR(search_->Run(declared, Seeds(declared)));
    reference_ = search_->best();
    if (!declared.empty()) reference_ = BestOf(declared);
    // A reference that is beaten needs no comparison with everybody else.
    const PairedTest best = search_->CompareAll(reference_)[search_->best()];
    if (StandingOf(best, options_.search.statistics) == Standing::kBetter) return absl::OkStatus();
    return search_->Settle(reference_);
  }

  // Where a search that cannot be exhaustive begins.
  std::vector<Candidate> Seeds(std::vector<Candidate> from) const {
    if (from.empty()) {
      // Tensors spread over the recording, in its order.
      Candidate spread;
      const auto tensors = static_cast<int32_t>(input_.captures.tensors.size());
      for (int32_t i = 0; i < input_.num_captures; ++i) {
        spread.tensors.push_back((2 * i + 1) * tensors / (2 * input_.num_captures));
      }
      from.push_back(std::move(spread));
    }
    std::vector<Candidate> seeds = from;
    const auto add = [&seeds](std::vector<Candidate> more) {
      seeds.insert(seeds.end(), more.begin(), more.end());
    };
    for (const Candidate& candidate : from) {
      add(OrdersOf(candidate));
      add(MovedByLayers(candidate, input_.captures, {-1, 1, -2, 2}));
      for (const int32_t shift : ShiftsToTry(result_.alignment)) add({{candidate.tensors, shift}});
    }
    return seeds;
  }

  int32_t BestOf(const std::vector<Candidate>& declared) const {
    int32_t best = search_->Find(declared[0]);
    for (const Candidate& candidate : declared) {
      const int32_t other = search_->Find(candidate);
      if (search_->candidates()[other].scores.mean_log_likelihood() >
          search_->candidates()[best].scores.mean_log_likelihood()) {
        best = other;
      }
    }
    return best;
  }

  // All candidates into the result, best first.
  void ListCandidates() {
    const std::vector<ScoredCandidate>& scored = search_->candidates();
    const std::vector<PairedTest> tests = search_->CompareAll(reference_);
    const std::vector<PairedTest> best_tests = search_->CompareAll(search_->best());
    order_.resize(scored.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      return tests[a].difference < tests[b].difference;
    });
    for (int32_t at = 0; at < static_cast<int32_t>(order_.size()); ++at) {
      const int32_t i = order_[at];
      CandidateResult candidate;
      candidate.wiring = ViewOf(scored[i].candidate, input_.captures);
      candidate.accuracy = scored[i].scores.accuracy();
      candidate.mean_log_likelihood = scored[i].scores.mean_log_likelihood();
      candidate.rows = search_->plan(scored[i].stage).rows();
      candidate.coarse = scored[i].stage != search_->last_stage();
      candidate.test = tests[i];
      candidate.standing =
          i == reference_ ? Standing::kReference : StandingOf(tests[i], options_.search.statistics);
      if (i != reference_) candidate.rows_for_3_sigma = RowsForThreeSigma(tests[i]);
      if (i == reference_) result_.reference = at;
      if (i == search_->best()) result_.best = at;
      result_.candidates.push_back(std::move(candidate));
    }
    for (const Reading& reading : input_.readings) ListReading(reading);
    const RowScores& scores = scored[reference_].scores;
    result_.rows = plan_.rows();
    result_.rows_outside_vocabulary = scores.rows_outside_vocabulary();
    result_.sequences = static_cast<int32_t>(plan_.ranges.size());
    ListPruning();
  }

  void ListReading(const Reading& reading) {
    DeclaredReading declared;
    declared.convention = reading.convention;
    declared.wiring = reading.wiring.ToString();
    declared.why_not = reading.why_not;
    if (reading.candidate.has_value()) {
      declared.candidate = PlaceOf(*reading.candidate);
      result_.candidates[declared.candidate].declared = true;
    }
    result_.declared.push_back(std::move(declared));
  }

  // Of a candidate that was looked at, in the result.
  int32_t PlaceOf(const Candidate& candidate) const {
    const int32_t i = search_->Find(candidate);
    return static_cast<int32_t>(std::find(order_.begin(), order_.end(), i) - order_.begin());
  }

  void ListPruning() {
    Pruning& pruned = result_.pruned;
    pruned.exhaustive = search_->exhaustive();
    pruned.possible = search_->possible();
    pruned.scored_coarse = static_cast<int64_t>(result_.candidates.size());
    for (const CandidateResult& candidate : result_.candidates) {
      pruned.scored_fully += candidate.coarse ? 0 : 1;
    }
    pruned.coarse_rows = search_->plan(0).rows();
    pruned.rows = plan_.rows();
    pruned.rule = absl::StrCat(
        pruned.exhaustive
            ? "every ordered choice of tensors with every shift was scored"
            : "a search from the declared wiring: all orders of it, every single tensor replaced, "
              "all moved by layers, every shift, and the same from the best that turned up",
        ShiftRule(),
        "; a candidate left the race once it was worse beyond doubt on the rows so far");
  }

  std::string ShiftRule() const {
    if (!result_.alignment.shift.has_value()) return "";
    return absl::StrCat(
        "; no shift was tried that gives a row the state of the token it is fed, since ",
        result_.alignment.reason);
  }

  absl::Status ScoreDepths(DraftModel& model) {
    chains_ = PlanChains(input_.captures, plan_, options_.depth, options_.max_chains);
    if (chains_.size() == 0) return absl::OkStatus();
    ChainScorer scorer(model, input_.captures, options_.rows_per_pass);
    const std::vector<int32_t> chosen = Detailed();
    for (size_t i = 0; i < chosen.size(); ++i) {
      const ScoredCandidate& scored = search_->candidates()[order_[chosen[i]]];
      AERIE_ASSIGN_OR_RETURN(ChainScores scores, scorer.Score(scored.candidate, chains_));
      result_.candidates[chosen[i]].depths = scores.Summary();
      if (chosen[i] == result_.best) best_chains_ = std::move(scores);
      Tell("accuracy by depth", i + 1, chosen.size());
    }
    return absl::OkStatus();
  }

  // Best, reference and other readings first, then whoever is close to the best.
  std::vector<int32_t> Detailed() const {
    std::vector<int32_t> chosen = {result_.best};
    const auto add = [&](int32_t i) {
      if (std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
    };
    add(result_.reference);
    for (const DeclaredReading& reading : result_.declared) {
      if (reading.candidate >= 0) add(reading.candidate);
    }
    for (int32_t i = 0; i < static_cast<int32_t>(result_.candidates.size()); ++i) {
      if (static_cast<int32_t>(chosen.size()) >= options_.max_detailed) break;
      if (result_.candidates[i].rival && !result_.candidates[i].coarse) add(i);
    }
    return chosen;
  }

  absl::Status TrySettings() {
    std::vector<PairedTest*> tests;
    result_.what_if.reserve(input_.variants.size());
    for (size_t i = 0; i < input_.variants.size(); ++i) {
      const SettingVariant& variant = input_.variants[i];
      WhatIf& what_if = result_.what_if.emplace_back();
      what_if.setting = variant.setting;
      what_if.declared = variant.declared;
      what_if.value = variant.value;
      what_if.why_not = variant.why_not;
      if (chains_.size() == 0) what_if.why_not = "no row has enough tokens behind it";
      if (!what_if.why_not.empty()) continue;
      AERIE_RETURN_IF_ERROR(TrySetting(variant, what_if));
      if (what_if.scored) tests.push_back(&what_if.test);
      Tell("settings", i + 1, input_.variants.size());
    }
    AdjustByHolm(tests);
    for (WhatIf& what_if : result_.what_if) {
      what_if.better = what_if.scored &&
                       StandingOf(what_if.test, options_.search.statistics) == Standing::kBetter;
    }
    return absl::OkStatus();
  }

  absl::Status TrySetting(const SettingVariant& variant, WhatIf& what_if) {
    absl::StatusOr<std::unique_ptr<DraftModel>> model = load_(variant.options);
    if (!model.ok()) {
      what_if.why_not = std::string(model.status().message());
      return absl::OkStatus();
    }
    ChainScorer scorer(**model, input_.captures, options_.rows_per_pass);
    const Candidate& best = search_->candidates()[order_[result_.best]].candidate;
    AERIE_ASSIGN_OR_RETURN(const ChainScores scores, scorer.Score(best, chains_));
    what_if.scored = true;
    what_if.depths = scores.Summary();
    what_if.test = ComparePaired(chains_.AsRowPlan(), best_chains_.MeanLogLikelihoods(),
                                 scores.MeanLogLikelihoods());
    return absl::OkStatus();
  }

  void Conclude() {
    const StatisticsOptions& statistics = options_.search.statistics;
    result_.alpha = statistics.alpha;
    result_.equivalence_margin = statistics.margin;
    Judge(result_, statistics);
    const Candidate& best = search_->candidates()[order_[result_.best]].candidate;
    const Reading* const reading = ReferenceReading();
    const TargetTables* const tables = input_.tables.has_value() ? &*input_.tables : nullptr;
    result_.labels = JudgeLabels({input_.captures, tables, reading, &best, WiringVerdict()});
    result_.profiles = ProfileTensors(input_.captures);
    result_.limits = input_.limits;
    if (reading != nullptr) {
      for (std::string& limit : LimitsOf(*reading, input_.captures, input_.num_layers)) {
        result_.limits.push_back(std::move(limit));
      }
    }
    result_.advice = Advise({result_, input_.captures, &best, reading, tables, input_.num_layers});
  }

  const Reading* ReferenceReading() const {
    for (const Reading& reading : input_.readings) {
      if (reading.candidate.has_value() && search_->Find(*reading.candidate) == reference_) {
        return &reading;
      }
    }
    return nullptr;
  }

  // A setting that is contradicted says nothing of labels.
  Verdict WiringVerdict() const {
    if (result_.verdict != Verdict::kContradicted) return result_.verdict;
    return result_.best == result_.reference ? Verdict::kUndecided : Verdict::kContradicted;
  }

  void Tell(const std::string& stage, size_t done, size_t total) const {
    if (progress_) progress_(stage, static_cast<int64_t>(done), static_cast<int64_t>(total));
  }

  const VerifyInput& input_;
  const VerifyOptions& options_;
  const ModelLoader& load_;
  const CandidateSearch::Progress& progress_;
  RowPlan plan_;
  ChainPlan chains_;
  std::optional<CandidateSearch> search_;
  int32_t reference_ = -1;      // in search_
  std::vector<int32_t> order_;  // of the result's candidates, as indices of search_
  ChainScores best_chains_;
  VerifyResult result_;
};

}  // namespace

absl::StatusOr<VerifyResult> Verify(const VerifyInput& input, const VerifyOptions& options,
                                    const ModelLoader& load,
                                    const CandidateSearch::Progress& progress) {
  return Verification(input, options, load, progress).Run();
}

}  // namespace aerie
