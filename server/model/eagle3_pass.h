// A loaded drafter: from a batch of sequences to one run of the net and back. Slots change only
// when all went well.
//
// Engine thread only, like the interface that it implements.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "server/engine/draft_model.h"
#include "server/model/eagle3_model_internal.h"
#include "server/model/eagle3_net.h"
#include "server/model/kv_pages.h"
#include "server/model/round_slots.h"

namespace aerie {

class Eagle3Model final : public DraftModel {
 public:
  Eagle3Model(DrafterSpec spec, Eagle3Net net, KvPages kv, std::vector<int32_t> draft_to_target,
              int32_t threads);

  const DrafterSpec& spec() const override { return spec_; }
  const KvStore& kv_store() const override { return kv_.store(); }
  void CopyPage(PageId from, PageId to) override { kv_.Copy(from, to); }
  void ReleaseSlot(SlotId slot) override { slots_.Release(slot); }

  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  void set_tap(LogitsTap tap) { tap_ = std::move(tap); }

 private:
  void CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k) const;
  void CheckDraftRows(const StepSequence& part) const;
  absl::StatusOr<std::vector<StepOutput>> Pass(absl::Span<const StepSequence> batch, int32_t top_k);
  at::Tensor HiddenOf(absl::Span<const StepSequence> batch, const PassRows& rows) const;
  std::vector<StepOutput> Judge(absl::Span<const StepSequence> batch, const PassRows& rows,
                                const at::Tensor& logits, int32_t top_k) const;
  void Keep(absl::Span<const StepSequence> batch, const PassRows& rows, const at::Tensor& feedback);
  int64_t aux_width() const { return int64_t{spec_.wiring.size()} * spec_.target_hidden_size; }
  void UseThreads() const;

  const DrafterSpec spec_;
  Eagle3Net net_;
  KvPages kv_;
  RoundSlots slots_;
  const std::vector<int32_t> draft_to_target_;
  const int32_t threads_;
  LogitsTap tap_;
};

}  // namespace aerie
