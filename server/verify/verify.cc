#include "server/verify/verify.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/verify/advice.h"
#include "server/verify/alignment.h"
#include "server/verify/depth_scoring.h"
#include "server/verify/labels.h"
#include "server/verify/listing.h"
#include "server/verify/profiles.h"
#include "server/verify/row_scoring.h"
#include "server/verify/setting_trials.h"
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
    List();
    AERIE_RETURN_IF_ERROR(ScoreDepths(*model));
    model.reset();  // one head at a time in memory
    AERIE_RETURN_IF_ERROR(TryVariants());
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
    plan_ = PlanRows(input_.captures, options_.max_rows, options_.search.min_rows_per_sequence);
    if (plan_.rows() == 0) {
      return absl::InvalidArgumentError(
          "the recording has no row to score; expected sequences with at least 4 tokens, of which "
          "2 "
          "were generated; record longer ones");
    }
    return absl::OkStatus();
  }

  absl::Status Search(DraftModel& model) {
    RowScorer scorer(model, input_.captures, options_.rows_per_pass);
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

  void List() {
    order_ = ListCandidates(*search_, reference_, input_.captures, input_.readings,
                            options_.search.statistics, result_);
    result_.rows = plan_.rows();
    result_.rows_outside_vocabulary =
        search_->candidates()[reference_].scores.rows_outside_vocabulary();
    result_.sequences = static_cast<int32_t>(plan_.ranges.size());
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

  absl::Status TryVariants() {
    const Candidate& best = search_->candidates()[order_[result_.best]].candidate;
    const SettingTrials trials{
        input_.captures,           best, chains_, best_chains_, options_.rows_per_pass,
        options_.search.statistics};
    AERIE_ASSIGN_OR_RETURN(result_.what_if,
                           TrySettings(trials, input_.variants, load_, [this](size_t done) {
                             Tell("settings", done, input_.variants.size());
                           }));
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
    const auto labels = [&] {
      return JudgeLabels({input_.captures, tables, reading, &best, Rivals(), WiringVerdict()});
    };
    DistrustLabels(labels(), result_);
    result_.labels = labels();  // anew: a verdict that was taken back supports none
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

  std::vector<Candidate> Rivals() const {
    std::vector<Candidate> rivals;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (result_.candidates[i].rival) {
        rivals.push_back(search_->candidates()[order_[i]].candidate);
      }
    }
    return rivals;
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
