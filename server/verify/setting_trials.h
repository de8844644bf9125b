// The best wiring under each setting that the head's files may have wrong.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/checkpoint/checkpoint.h"
#include "server/engine/draft_model.h"
#include "server/verify/candidate.h"
#include "server/verify/capture_set.h"
#include "server/verify/depth_scoring.h"
#include "server/verify/statistics.h"
#include "server/verify/verify_result.h"
#include "server/verify/what_if.h"

namespace aerie {

// Loads the head under these options.
using ModelLoader =
    std::function<absl::StatusOr<std::unique_ptr<DraftModel>>(const CheckpointOptions& options)>;

struct SettingTrials {
  const CaptureSet& captures;
  const Candidate& wiring;
  const ChainPlan& chains;
  const ChainScores& in_force;  // under the settings in force
  int64_t rows_per_pass = 0;
  const StatisticsOptions& statistics;
};

// One row for each variant. A variant that does not load is a row that says why; a model that fails
// is a failure. `tell` is called with the number of variants done.
absl::StatusOr<std::vector<WhatIf>> TrySettings(const SettingTrials& trials,
                                                absl::Span<const SettingVariant> variants,
                                                const ModelLoader& load,
                                                const std::function<void(size_t done)>& tell);

}  // namespace aerie
