// Recorded rows, and perhaps a tree to draft behind them, from a safetensors file.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/draft_tree.h"
#include "common/hidden_rows.h"
#include "common/safetensors/safetensors.h"

namespace aerie {

// Views of a file, which must outlive it.
struct Recording {
  std::vector<int32_t> tokens;
  HiddenRows aux;
  DraftTree tree;  // of tokens and parents alone; perhaps empty
};

// `aux` [rows, width] and `tokens` [rows], at least one row; `tree_tokens` and `tree_parents` where
// they are there. INVALID_ARGUMENT for anything else, and for tokens outside 0 .. vocab - 1.
absl::StatusOr<Recording> ReadRecording(const SafetensorsFile& file, int64_t width, int32_t vocab);

}  // namespace aerie
