// What computes the rows of a pass: the head's weights and equations behind one interface.
//
// There are three. PackedNet runs on our own kernels and does grouped-query attention; TorchNet
// runs on LibTorch and does all; CudaNet runs on a CUDA device. The equations are the same, and
// stand in eagle3_net.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/checkpoint/checkpoint.h"
#include "server/engine/draft_model.h"
#include "server/model/eagle3_model_internal.h"
#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"
#include "server/model/round_slots.h"

namespace aerie {

// One pass as a net sees it. All of it outlives the pass.
struct NetInput {
  absl::Span<const StepSequence> batch;
  const PassRows& rows;  // of the batch
  const RoundSlots& slots;
  int32_t top_k = 1;
  const LogitsTap& tap;
};

// Engine thread only. Throws what LibTorch throws, and std::bad_alloc.
class HeadNet {
 public:
  virtual ~HeadNet() = default;

  virtual const KvShape& kv_shape() const = 0;
  virtual int64_t weight_bytes() const = 0;
  // Of the weights that every step reads: all but the embedding.
  virtual int64_t step_bytes() const = 0;
  // Of one draft hidden state as slots keep it.
  virtual int64_t state_bytes() const = 0;
  // What computes, for people: "own kernels, avx512".
  virtual std::string name() const = 0;
  // As DraftModel's.
  virtual bool runs_on_any_thread() const = 0;

  // Told once, before the first pass. A net that keeps pages elsewhere than in KvPages makes room
  // for them.
  virtual void AttachStore(const KvStore& store) { static_cast<void>(store); }
  // Must not throw.
  virtual void CopyPage(KvPages& kv, PageId from, PageId to) { kv.Copy(from, to); }

  // Writes the KV of every row into its page and judges the wanted rows: `outputs` [batch], each
  // with as many rows as are wanted of it. Returns the draft hidden states of the wanted rows in
  // their order, state_bytes() each, valid until the next pass; null when no row is wanted.
  virtual const std::byte* Run(const NetInput& input, KvPages& kv,
                               std::vector<StepOutput>& outputs) = 0;
};

// Rows of which the output is wanted.
size_t WantedOf(const StepSequence& part);

// The shape of the draft KV of a head.
KvShape KvShapeOf(const HeadSpec& spec, KvElement element);

// What is wanted of one row.
struct Question {
  size_t part, row;  // of the batch, and of its wanted rows
  int64_t number;    // of all wanted rows of the pass
  int32_t probe = -1;
};

// The questions of a pass in the order of the batch. Memory is kept from one pass to the next.
class Questions {
 public:
  void Assign(absl::Span<const StepSequence> batch, const PassRows& rows);
  const std::vector<Question>& all() const { return all_; }

 private:
  std::vector<int64_t> first_of_;
  std::vector<Question> all_;
};

}  // namespace aerie
