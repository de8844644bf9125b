#include "server/verify/setting_trials.h"

#include <string>

#include "common/status_macros.h"

namespace aerie {
namespace {

absl::Status Try(const SettingTrials& trials, const SettingVariant& variant,
                 const ModelLoader& load, WhatIf& row) {
  absl::StatusOr<std::unique_ptr<DraftModel>> model = load(variant.options);
  if (!model.ok()) {
    row.why_not = std::string(model.status().message());
    return absl::OkStatus();
  }
  ChainScorer scorer(**model, trials.captures, trials.rows_per_pass);
  AERIE_ASSIGN_OR_RETURN(const ChainScores scores, scorer.Score(trials.wiring, trials.chains));
  row.scored = true;
  row.depths = scores.Summary();
  // Over all depths: what is fed back shows from the second on.
  row.test = ComparePaired(trials.chains.AsRowPlan(), trials.in_force.MeanLogLikelihoods(),
                           scores.MeanLogLikelihoods());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<WhatIf>> TrySettings(const SettingTrials& trials,
                                                absl::Span<const SettingVariant> variants,
                                                const ModelLoader& load,
                                                const std::function<void(size_t done)>& tell) {
  std::vector<WhatIf> rows;
  for (const SettingVariant& variant : variants) {
    WhatIf& row = rows.emplace_back();
    row.setting = variant.setting;
    row.declared = variant.declared;
    row.value = variant.value;
    row.why_not =
        trials.chains.size() == 0 ? "no row has enough tokens behind it" : variant.why_not;
    if (row.why_not.empty()) AERIE_RETURN_IF_ERROR(Try(trials, variant, load, row));
    tell(rows.size());
  }
  std::vector<PairedTest*> tests;
  for (WhatIf& row : rows) {
    if (row.scored) tests.push_back(&row.test);
  }
  AdjustByHolm(tests);
  for (WhatIf& row : rows) {
    row.better = row.scored && StandingOf(row.test, trials.statistics) == Standing::kBetter;
  }
  return rows;
}

}  // namespace aerie
