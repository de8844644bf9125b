// The whole of a verification: from recorded states and a head to a result.
//
// Models come from outside, one at a time, so that all of this is tested with a fake one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/verify/capture_set.h"
#include "server/verify/declared.h"
#include "server/verify/search.h"
#include "server/verify/setting_trials.h"
#include "server/verify/target_tables.h"
#include "server/verify/verify_result.h"

namespace aerie {

struct VerifyOptions {
  int64_t max_rows = 4096;  // scored for a candidate; >= 1
  int64_t rows_per_pass = 512;
  int32_t depth = 5;         // 1..16
  int64_t max_chains = 512;  // of drafts, for accuracy by depth
  int32_t max_detailed = 8;  // candidates with accuracy by depth
  SearchOptions search;
};

struct VerifyInput {
  CaptureSet captures;
  std::optional<TargetTables> tables;  // of the target, if one was given
  int32_t num_layers = 0;              // of the target; 0: not known
  int32_t num_captures = 0;            // of the head
  std::vector<Reading> readings;       // with candidates, where they have one
  CheckpointOptions options;           // of the head in force
  std::vector<SettingVariant> variants;
  std::vector<std::string> limits;  // what could not be prepared
};

// Fills all of the result but the names of files. INVALID_ARGUMENT: the recording has fewer tensors
// than the head takes, or no row to score. Else as the loader or the model fails.
absl::StatusOr<VerifyResult> Verify(const VerifyInput& input, const VerifyOptions& options,
                                    const ModelLoader& load,
                                    const CandidateSearch::Progress& progress);

}  // namespace aerie
