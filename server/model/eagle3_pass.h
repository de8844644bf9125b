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
#include "server/model/kv_cache.h"

namespace aerie {

class Eagle3Model final : public DraftModel {
 public:
  Eagle3Model(DrafterSpec spec, Eagle3Net net, std::vector<int32_t> draft_to_target,
              int32_t threads, int32_t max_sessions)
      : spec_(std::move(spec)),
        net_(std::move(net)),
        draft_to_target_(std::move(draft_to_target)),
        threads_(threads),
        slots_(net_.kv_shape(), max_sessions) {}

  const DrafterSpec& spec() const override { return spec_; }
  absl::StatusOr<SlotId> OpenSlot() override { return slots_.Open(); }
  void CloseSlot(SlotId slot) override { slots_.Close(slot); }
  int64_t SlotLength(SlotId slot) const override { return slots_.at(slot).length(); }
  void Truncate(SlotId slot, int64_t length) override { slots_.at(slot).Truncate(length); }

  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  void set_tap(LogitsTap tap) { tap_ = std::move(tap); }

 private:
  void CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k) const;
  absl::StatusOr<std::vector<StepOutput>> Pass(absl::Span<const StepSequence> batch, int32_t top_k);
  at::Tensor HiddenOf(absl::Span<const StepSequence> batch, absl::Span<const size_t> order) const;
  void UseThreads() const;

  const DrafterSpec spec_;
  Eagle3Net net_;
  const std::vector<int32_t> draft_to_target_;
  const int32_t threads_;
  KvCache slots_;
  LogitsTap tap_;
};

}  // namespace aerie
