// What a head may take from its target: the embedding and the output matrix.
//
// A target's checkpoint may hold several models side by side, each with names of its own, so a
// tensor is found by the last part of its name and only when exactly one has it.
#pragma once

#include <optional>
#include <string>

#include "common/safetensors/safetensors.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/target_config.h"
#include "server/checkpoint/weights_folder.h"

namespace aerie {

struct BorrowedTensor {
  TensorSpan tensor;
  std::string source;  // "target's tensor model.embed_tokens.weight"
};

// `key`: the full name; empty: found by its suffix. nullopt with a complaint when there is not
// exactly one, or when it is not [vocab_size, hidden_size] of floats.
std::optional<BorrowedTensor> BorrowEmbedding(const WeightsFolder& weights,
                                              const TargetSpec& target, const std::string& key,
                                              Complaints& complaints);

// The target's output matrix; its embedding when it says that the two are one.
std::optional<BorrowedTensor> BorrowOutput(const WeightsFolder& weights, const TargetSpec& target,
                                           const std::string& embedding_key,
                                           Complaints& complaints);

}  // namespace aerie
