// What a target's files add to a recording: its embedding table and the weights of its final norm.
//
// They make two more tensors for candidates to choose from, and they tell an embedding and a normed
// state by their values, whatever a label says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "server/checkpoint/target_config.h"
#include "server/checkpoint/weights_folder.h"
#include "server/verify/capture_set.h"

namespace aerie {

struct TargetTables {
  std::string model_type;  // of config.json; empty: not said
  TargetSpec spec;
  std::optional<HiddenRows> embedding;  // [vocab, hidden]
  std::optional<HiddenRows> output;     // the same of the output matrix, when it is another one
  std::vector<float> norm_weight;       // [hidden]; empty: not found
  double norm_epsilon = 0.0;
  std::optional<double> rope_theta;  // of config.json
  std::vector<std::string> limits;   // what is missing, and what cannot be tested for want of it
  std::shared_ptr<const WeightsFolder> weights;  // owns the bytes
};

// NOT_FOUND or INVALID_ARGUMENT when the folder cannot be read. A table that is not there is a
// limit.
absl::StatusOr<TargetTables> LoadTargetTables(const std::string& folder,
                                              const std::string& embedding_key);

// What the values of a tensor say that it is.
enum class ValueFinding { kUnknown, kEmbedding, kFinalNorm };
ValueFinding FindByValue(const CaptureSet& captures, int32_t tensor, const TargetTables& tables);

// Adds "target.embedding" and "target.norm(NAME)", the latter of the tensor that claims to be the
// state behind the last layer; neither when a recorded tensor has these values already. Adds to
// `limits` what could not be made.
void AddTargetTensors(const TargetTables& tables, CaptureSet& captures,
                      std::vector<std::string>& limits);

}  // namespace aerie
