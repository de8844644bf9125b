#include "server/verify/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace aerie {
namespace {

// The candidate that comes closest to the reference, or beats it by most, of those that `take`
// accepts.
template <typename Take>
std::optional<int32_t> ClosestOf(const VerifyResult& result, Take take) {
  std::optional<int32_t> closest;
  for (int32_t i = 0; i < static_cast<int32_t>(result.candidates.size()); ++i) {
    if (!take(result.candidates[i])) continue;
    if (!closest.has_value() ||
        result.candidates[i].test.difference < result.candidates[*closest].test.difference) {
      closest = i;
    }
  }
  return closest;
}

std::optional<int32_t> ClosestOf(const VerifyResult& result, Standing standing) {
  return ClosestOf(result, [standing](const CandidateResult& candidate) {
    return candidate.standing == standing;
  });
}

void SetContender(VerifyResult& result, std::optional<int32_t> contender) {
  if (!contender.has_value()) return;
  const PairedTest& test = result.candidates[*contender].test;
  result.margin = std::abs(test.difference);
  result.p_value = test.p_adjusted;
}

// Rows at which the last of the open candidates would be settled; none when one never would, or
// when what is missing is not rows: some were not scored on all that there are.
std::optional<int64_t> RowsNeeded(const VerifyResult& result, const StatisticsOptions& options) {
  int64_t needed = 0;
  for (const CandidateResult& candidate : result.candidates) {
    if (candidate.standing != Standing::kOpen) continue;
    if (candidate.coarse) return std::nullopt;
    const std::optional<int64_t> rows = RowsToSettle(candidate.test, options);
    if (!rows.has_value()) return std::nullopt;
    needed = std::max(needed, *rows);
  }
  return std::max(needed, result.rows + 1);
}

const DeclaredReading* UnshownReading(const VerifyResult& result) {
  for (const DeclaredReading& reading : result.declared) {
    if (reading.candidate < 0) return &reading;
  }
  return nullptr;
}

int64_t Count(const VerifyResult& result, Standing standing) {
  return std::count_if(
      result.candidates.begin(), result.candidates.end(),
      [standing](const CandidateResult& candidate) { return candidate.standing == standing; });
}

std::string NameOf(const VerifyResult& result, int32_t candidate) {
  return result.candidates[candidate].wiring.Name();
}

const WhatIf* BetterSetting(const VerifyResult& result) {
  const WhatIf* found = nullptr;
  for (const WhatIf& what_if : result.what_if) {
    if (!what_if.better) continue;
    if (found == nullptr || what_if.test.difference < found->test.difference) found = &what_if;
  }
  return found;
}

void Set(VerifyResult& result, Verdict verdict, std::string reason) {
  result.verdict = verdict;
  result.reason = std::move(reason);
}

// The best candidate with this shift.
std::optional<int32_t> BestShiftedBy(const VerifyResult& result, int32_t shift) {
  return ClosestOf(result, [shift](const CandidateResult& candidate) {
    return candidate.wiring.shift == shift;
  });
}

// Values say that the recording is off. What rows hold of the very token that is fed makes them
// draft well, so scores need not be better with the right shift; but they must not be far worse.
void JudgeMisaligned(VerifyResult& result, int32_t shift) {
  constexpr double kFarWorse = 0.5;  // nats a row
  const std::optional<int32_t> aligned = BestShiftedBy(result, shift);
  SetContender(result, aligned);
  if (aligned.has_value() && result.candidates[*aligned].test.difference < kFarWorse) {
    return Set(result, Verdict::kContradicted,
               absl::StrFormat("the states of the recording are shifted by %+d: %s", shift,
                               result.alignment.reason));
  }
  Set(result, Verdict::kUndecided,
      absl::StrFormat("values and scores contradict each other: %s, but the head drafts worse with "
                      "states shifted by %+d",
                      result.alignment.reason, shift));
}

// Without an alignment, fresher states than the declared ones draft better whether or not they are
// the right ones.
bool MayBeALeak(const VerifyResult& result, int32_t candidate) {
  return !result.alignment.shift.has_value() &&
         result.candidates[candidate].wiring.shift >
             result.candidates[result.reference].wiring.shift;
}

}  // namespace

void Judge(VerifyResult& result, const StatisticsOptions& options) {
  result.equivalent.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(result.candidates.size()); ++i) {
    if (result.candidates[i].standing == Standing::kEquivalent) result.equivalent.push_back(i);
  }
  const DeclaredReading* const unshown = UnshownReading(result);
  const bool is_declared = result.reference >= 0 && result.candidates[result.reference].declared;
  if (result.sequences < kMinSequences) {
    return Set(result, Verdict::kUndecided,
               absl::StrFormat("the recording has %d sequences with rows to score; with fewer than "
                               "%d nothing is decided, however many rows they have",
                               result.sequences, kMinSequences));
  }
  if (!is_declared) {
    return Set(result, Verdict::kUndecided,
               absl::StrCat("the wiring that the head's files declare, ",
                            unshown == nullptr ? "" : unshown->wiring,
                            ", cannot be shown: ", unshown == nullptr ? "" : unshown->why_not));
  }
  if (unshown != nullptr) {
    return Set(result, Verdict::kUndecided,
               absl::StrCat("the head's layer ids can be read in two ways, and ", unshown->wiring,
                            " (", unshown->convention, ") could not be tried: ", unshown->why_not));
  }
  const int32_t shift = result.alignment.shift.value_or(0);
  if (shift != result.candidates[result.reference].wiring.shift) {
    return JudgeMisaligned(result, shift);
  }
  if (const auto better = ClosestOf(result, Standing::kBetter)) {
    SetContender(result, better);
    if (MayBeALeak(result, *better)) {
      return Set(result, Verdict::kUndecided,
                 absl::StrCat(NameOf(result, *better),
                              " is better, but states of the very token that is fed always may be, "
                              "and values do not tell whose these are: ",
                              result.alignment.reason));
    }
    return Set(
        result, Verdict::kContradicted,
        absl::StrFormat("%s is better than the declared %s by %.3f nats a row",
                        NameOf(result, *better), NameOf(result, result.reference), result.margin));
  }
  if (const WhatIf* const setting = BetterSetting(result)) {
    result.margin = -setting->test.difference;
    result.p_value = setting->test.p_adjusted;
    return Set(
        result, Verdict::kContradicted,
        absl::StrFormat("the head does better by %.3f nats a row with %s %s than with the %s "
                        "of its files; its wiring is not contradicted",
                        result.margin, setting->setting, setting->value, setting->declared));
  }
  if (const auto open = ClosestOf(result, Standing::kOpen)) {
    SetContender(result, open);
    result.rows_needed = RowsNeeded(result, options);
    return Set(result, Verdict::kUndecided,
               absl::StrFormat("%d candidates could not be told from the declared one on %d rows; "
                               "the closest is %s",
                               Count(result, Standing::kOpen), result.rows, NameOf(result, *open)));
  }
  SetContender(result, ClosestOf(result, Standing::kExcluded));
  if (!result.equivalent.empty()) {
    return Set(result, Verdict::kEquivalent,
               absl::StrFormat("no candidate is better than the declared one by as much as %.3g "
                               "nats a row, and %d are as good",
                               options.margin, result.equivalent.size()));
  }
  Set(result, Verdict::kVerified,
      absl::StrFormat("the declared wiring beats all %d others; the closest is worse by %.3f nats "
                      "a row",
                      Count(result, Standing::kExcluded), result.margin));
}

void DistrustLabels(const std::vector<LabelResult>& labels, VerifyResult& result) {
  if (result.verdict != Verdict::kVerified && result.verdict != Verdict::kEquivalent) return;
  for (const LabelResult& label : labels) {
    if (label.verdict != LabelVerdict::kContradicted) continue;
    return Set(result, Verdict::kUndecided,
               absl::StrCat("the declared wiring fits, but it was found by labels, and tensor ",
                            label.tensor, " is not ", label.claim, " (", label.reason,
                            "): the other labels may be off likewise; label the tensors by "
                            "`aerie-verify match` with a recording of the target itself"));
  }
}

}  // namespace aerie
