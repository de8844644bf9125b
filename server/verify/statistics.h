// Whether one candidate is better than another, and how sure that is.
//
// Rows of one text are not independent, so a *sequence* is the unit: a thousand rows of one text
// are one observation. With fewer than kMinSequences of them nothing is ever decided.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/verify/row_scores.h"
#include "server/verify/verify_result.h"

namespace aerie {

inline constexpr int32_t kMinSequences = 8;

struct StatisticsOptions {
  double alpha = 0.0027;  // of any wrong exclusion, over all candidates: 3 sigma; 0 < alpha < 1
  double margin = 0.03;   // nats a row below which two candidates are practically one; > 0
};

// Mean of reference - other over the rows in the draft vocabulary, with a standard error that is
// robust to any dependence within a sequence. Both are in the order of `plan`. p_adjusted is left
// at 1. With fewer than kMinSequences, p_value is 1.
PairedTest ComparePaired(const RowPlan& plan, absl::Span<const float> reference,
                         absl::Span<const float> other);

// Holm's step-down adjustment: p_adjusted of every test, in place.
void AdjustByHolm(absl::Span<PairedTest* const> tests);

// Where the other stands, by the adjusted p and by the margin. Never kReference.
Standing StandingOf(const PairedTest& test, const StatisticsOptions& options);

// Rows at which the difference would reach 3 standard errors, if it is what it seems; none when
// there is no difference or no estimate.
std::optional<int64_t> RowsForThreeSigma(const PairedTest& test);

// Rows at which an open candidate would probably be told apart or found equivalent, whichever
// comes first.
std::optional<int64_t> RowsToSettle(const PairedTest& test, const StatisticsOptions& options);

}  // namespace aerie
