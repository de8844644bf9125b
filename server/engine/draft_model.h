// THE SEAM: what the engine asks of a drafter. Implemented by server/model with LibTorch and by a
// fake in tests.
//
// The model computes and stores; the engine keeps the books. Draft KV lies in *pages* of a store
// that the model owns, and the engine says with every part of a pass which pages hold the rows of
// its sequence, so the model knows neither sessions nor lengths. A *slot* is where the model keeps
// the draft hidden states of one round, from its extend rows to its last draft row.
//
// Two kinds of rows go through the same pass. Extend rows carry aux hidden states of the target and
// follow each other. Draft rows are nodes of a draft tree: each carries the draft hidden state of
// its parent's row, sees the extend rows and its own ancestors, and no other branch. A chain is a
// tree of width 1.
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
  std::string fc_digest;  // see DrafterInfo in the contract; empty: fused rows are not taken

  ManifestRequirement requirement() const {
    return {name,   target_num_layers, target_hidden_size, vocab_size,
            wiring, hidden_size,       fc_digest};
  }
};

using PageId = int32_t;
inline constexpr PageId kNoPage = -1;
using SlotId = int32_t;

// The store of draft KV.
struct KvStore {
  int32_t page_rows = 0;   // rows of one page, all layers
  int32_t num_pages = 0;   // ids are 0..num_pages-1
  int64_t page_bytes = 0;  // keys and values of all layers
};

// Which committed rows a row sees. Row indices are absolute, and so are RoPE positions: a sequence
// that begins at row 1000 begins at position 1000.
struct VisibleRows {
  int64_t start = 0;   // rows before it do not exist
  int64_t sink = 0;    // with a window: so many rows from `start` on stay visible as well
  int64_t window = 0;  // the row at position p sees committed rows above p - window; 0: all of them

  bool Sees(int64_t position, int64_t row) const {
    return row >= start && row <= position &&
           (window == 0 || row < start + sink || row > position - window);
  }
};

// The rows of a part of which the output is wanted: scores in the result, and a draft hidden state
// that draft rows may start from (of extend rows only the last one's is kept).
enum class Outputs { kNone, kLast, kEvery };

// One sequence's part of a pass.
struct StepSequence {
  // Dense small numbers that the engine gives out; one part of a pass each. Extend rows begin the
  // slot anew; draft rows add to it.
  SlotId slot = 0;
  // Row r of the sequence lies in pages[r / page_rows], at r % page_rows. Entries that hold no
  // visible row may be kNoPage. Covers the rows of this part. No page that this part writes to is
  // used by another sequence.
  absl::Span<const PageId> pages;
  // Committed rows: extend rows of this part stand behind them, at row indices length,
  // length + 1, ... Draft row j of the slot stands at row index length + j, wherever in the tree it
  // is; its RoPE position is length - 1 + depth, its depth being 1 for children of the root.
  int64_t length = 0;
  VisibleRows visible;
  // Target ids, in 0..vocab_size-1. Of an extend row: the token that follows its hidden state. Of a
  // draft row: the node's own token. At least one.
  absl::Span<const int32_t> tokens;
  // Extend rows: [tokens.size(), captures x target hidden]. Draft rows: empty.
  HiddenRows aux;
  // `aux` is what fc made of them, [tokens.size(), hidden_size]. Only with an fc_digest.
  bool fused = false;
  // Draft rows: of each the number of its parent's draft row in this slot, counted from 0 in order
  // of arrival; -1: the root, whose output is that of the last extend row. A parent came with an
  // earlier pass and its output was wanted. Extend rows: empty.
  absl::Span<const int32_t> parents;
  Outputs outputs = Outputs::kNone;
  // One entry for each wanted row, or empty: the target id whose log-probability is to be told; -1:
  // none.
  absl::Span<const int32_t> probes;

  bool IsExtend() const { return !aux.empty(); }
};

struct ScoredToken {
  int32_t token = 0;      // target id
  float log_prob = 0.0f;  // natural log, over the draft vocabulary
};

// Of one wanted row.
struct RowOutput {
  std::vector<ScoredToken> top;  // best first, as many as asked; equal scores: lower draft id first
  // False: the scores behind this row are NaN or infinite, and `top` is empty. The hidden states
  // of this sequence are too large to compute with; the rest of the batch does not feel it.
  bool finite = true;
  // Natural log; minus infinity when the probed token is outside the draft vocabulary, 0 when none
  // was probed.
  float probe_log_prob = 0.0f;
};

// Of one part: its wanted rows in order.
struct StepOutput {
  std::vector<RowOutput> rows;
};

// Engine thread only.
class DraftModel {
 public:
  virtual ~DraftModel() = default;

  // Whether the engine thread may be another one from one pass to the next. False: what computes
  // keeps something for each thread that calls it, such as a pool or the device in use.
  virtual bool runs_on_any_thread() const = 0;

  virtual const DrafterSpec& spec() const = 0;
  virtual const KvStore& kv_store() const = 0;

  // Copies all rows of all layers. from != to.
  virtual void CopyPage(PageId from, PageId to) = 0;
  // Forgets the draft hidden states of a round. The slot may be used again at once; one that holds
  // nothing may be released.
  virtual void ReleaseSlot(SlotId slot) = 0;

  // One pass over the batch; slots are distinct. On success output[i] belongs to batch[i], with
  // `top_k` tokens for each wanted row (1..draft_vocab_size). On failure (INTERNAL, or
  // RESOURCE_EXHAUSTED when memory for the rows is missing) every slot holds what it held before
  // the pass, and pages differ at most in the rows that this pass was to write.
  virtual absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                                       int32_t top_k) = 0;
};

}  // namespace aerie
