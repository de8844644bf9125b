// THE SEAM: what the engine asks of a drafter. Implemented by server/model with LibTorch and by a
// fake in tests.
//
// A *slot* holds the draft KV of one sequence. A pass (`Step`) appends rows to the slots of its
// sequences and gives, for those that want it, the most likely next tokens. Two kinds of rows go
// through the same pass: extend rows carry aux hidden states of the target; draft rows carry the
// drafter's own output for the row before, which the model keeps per slot (the *draft hidden
// state*).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"
#include "common/setting.h"

namespace aerie {

// What is known of a loaded drafter. Immutable.
struct DrafterSpec {
  std::string name;
  std::string version;  // digest of the weights file
  Wiring wiring;
  int32_t target_num_layers = 0;
  int32_t target_hidden_size = 0;
  int32_t vocab_size = 0;        // of the target
  int32_t draft_vocab_size = 0;  // rows of the output matrix
  int32_t hidden_size = 0;       // of the drafter
  int64_t weight_bytes = 0;      // in the compute dtype
  std::vector<Setting> settings;

  ManifestRequirement requirement() const {
    return {name, target_num_layers, target_hidden_size, vocab_size, wiring};
  }
};

using SlotId = int32_t;

// One sequence's part of a pass.
struct StepSequence {
  SlotId slot = 0;
  // Row index of the first row; must equal SlotLength(slot).
  int64_t position = 0;
  // Target ids, in 0..vocab_size-1: of each row the token that follows its hidden state. At least
  // one.
  absl::Span<const int32_t> tokens;
  // Extend rows: [tokens.size(), captures x target hidden]. Draft row: empty, and `tokens` has
  // exactly one entry. A draft row must follow a row of the same slot that had `wants_output`, with
  // no truncation of that row between.
  HiddenRows aux;
  // Whether the last row's output is needed: as logits in the result and as the hidden state of a
  // draft row to come.
  bool wants_output = false;
};

struct ScoredToken {
  int32_t token = 0;      // target id
  float log_prob = 0.0f;  // natural log, over the draft vocabulary
};

// Of one sequence. Empty unless it wanted output.
struct StepOutput {
  std::vector<ScoredToken> top;  // best first, top_k of them; equal scores: lower id first
  // False: the scores behind the wanted row are NaN or infinite, and `top` is empty. The hidden
  // states of this sequence are too large to compute with; the rest of the batch does not feel it.
  bool finite = true;
};

// Engine thread only.
class DraftModel {
 public:
  virtual ~DraftModel() = default;

  virtual const DrafterSpec& spec() const = 0;

  // RESOURCE_EXHAUSTED when there is no room for another sequence.
  virtual absl::StatusOr<SlotId> OpenSlot() = 0;
  virtual void CloseSlot(SlotId slot) = 0;

  // Rows that the slot holds.
  virtual int64_t SlotLength(SlotId slot) const = 0;
  // Forgets all rows from `length` on. length <= SlotLength(slot).
  virtual void Truncate(SlotId slot, int64_t length) = 0;

  // One pass over the batch; slots are distinct. On success output[i] belongs to batch[i]. On
  // failure (INTERNAL, or RESOURCE_EXHAUSTED when memory for the rows is missing) every slot holds
  // what it held before the pass.
  virtual absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                                       int32_t top_k) = 0;
};

}  // namespace aerie
