#include "server/verify/listing.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

std::string RuleOf(const CandidateSearch& search, const Alignment& alignment) {
  std::string rule =
      search.exhaustive()
          ? "every ordered choice of tensors with every shift was scored"
          : "a search from the declared wiring: all orders of it, every single tensor replaced, "
            "all "
            "moved by layers, every shift, and the same from the best that turned up";
  if (alignment.shift.has_value()) {
    absl::StrAppend(
        &rule, "; no shift was tried that gives a row the state of the token it is fed, since ",
        alignment.reason);
  }
  absl::StrAppend(&rule, "; a candidate left the race once it was far worse beyond doubt");
  return rule;
}

void ListReadings(const CandidateSearch& search, absl::Span<const Reading> readings,
                  const std::vector<int32_t>& order, VerifyResult& result) {
  for (const Reading& reading : readings) {
    DeclaredReading declared;
    declared.convention = reading.convention;
    declared.wiring = reading.wiring.ToString();
    declared.why_not = reading.why_not;
    if (reading.candidate.has_value()) {
      const int32_t index = search.Find(*reading.candidate);
      declared.candidate =
          static_cast<int32_t>(std::find(order.begin(), order.end(), index) - order.begin());
      result.candidates[declared.candidate].declared = true;
    }
    result.declared.push_back(std::move(declared));
  }
}

}  // namespace

std::vector<int32_t> ListCandidates(const CandidateSearch& search, int32_t reference,
                                    const CaptureSet& captures, absl::Span<const Reading> readings,
                                    const StatisticsOptions& statistics, VerifyResult& result) {
  const std::vector<ScoredCandidate>& scored = search.candidates();
  const int32_t best = search.best();
  const std::vector<PairedTest> tests = search.CompareAll(reference);
  const std::vector<PairedTest> best_tests = search.CompareAll(best);
  std::vector<int32_t> order(scored.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return tests[a].difference < tests[b].difference; });
  for (const int32_t i : order) {
    CandidateResult candidate;
    candidate.wiring = ViewOf(scored[i].candidate, captures);
    candidate.accuracy = scored[i].scores.accuracy();
    candidate.mean_log_likelihood = scored[i].scores.mean_log_likelihood();
    candidate.rows = search.plan(scored[i].stage).rows();
    candidate.coarse = scored[i].stage != search.last_stage();
    candidate.test = tests[i];
    candidate.best_test = best_tests[i];
    candidate.rival = i == best || (search.HasTriedShift(i) &&
                                    StandingOf(best_tests[i], statistics) != Standing::kExcluded);
    candidate.standing = i == reference ? Standing::kReference : StandingOf(tests[i], statistics);
    if (i != reference) candidate.rows_for_3_sigma = RowsForThreeSigma(tests[i]);
    const auto at = static_cast<int32_t>(result.candidates.size());
    if (i == reference) result.reference = at;
    if (i == best) result.best = at;
    result.candidates.push_back(std::move(candidate));
  }
  ListReadings(search, readings, order, result);

  Pruning& pruned = result.pruned;
  pruned.exhaustive = search.exhaustive();
  // A declared one with another shift comes on top.
  pruned.possible = std::max(search.possible(), static_cast<double>(scored.size()));
  pruned.scored_coarse = static_cast<int64_t>(scored.size());
  pruned.scored_fully =
      std::count_if(result.candidates.begin(), result.candidates.end(),
                    [](const CandidateResult& candidate) { return !candidate.coarse; });
  pruned.coarse_rows = search.plan(0).rows();
  pruned.rows = search.plan(search.last_stage()).rows();
  pruned.rule = RuleOf(search, result.alignment);
  return order;
}

}  // namespace aerie
