// A loaded drafter: from a batch of sequences to one run of the net and back. Slots change only
// when all went well.
//
// Engine thread only, like the interface that it implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/draft_model.h"
#include "server/model/eagle3_model_internal.h"
#include "server/model/head_net.h"
#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"
#include "server/model/round_slots.h"

namespace aerie {

class Eagle3Model final : public DraftModel {
 public:
  Eagle3Model(DrafterSpec spec, std::unique_ptr<HeadNet> net, KvPages kv);

  const DrafterSpec& spec() const override { return spec_; }
  const KvStore& kv_store() const override { return kv_.store(); }
  bool runs_on_any_thread() const override { return net_->runs_on_any_thread(); }
  void CopyPage(PageId from, PageId to) override { net_->CopyPage(kv_, from, to); }
  void ReleaseSlot(SlotId slot) override { slots_.Release(slot); }

  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  void set_tap(LogitsTap tap) { tap_ = std::move(tap); }

 private:
  void CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k);
  void CheckDraftRows(const StepSequence& part) const;
  absl::StatusOr<std::vector<StepOutput>> Pass(absl::Span<const StepSequence> batch, int32_t top_k);
  void Keep(absl::Span<const StepSequence> batch, const std::byte* states);
  int64_t aux_width() const { return int64_t{spec_.wiring.size()} * spec_.target_hidden_size; }

  const DrafterSpec spec_;
  std::unique_ptr<HeadNet> net_;
  KvPages kv_;
  RoundSlots slots_;
  LogitsTap tap_;
  PassRows rows_;                    // of the pass in hand
  std::vector<SlotId> batch_slots_;  // likewise, ascending
};

}  // namespace aerie
