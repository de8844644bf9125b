#include "server/model/eagle3_pass.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "common/check.h"
#include "server/model/torch_status.h"

namespace aerie {

Eagle3Model::Eagle3Model(DrafterSpec spec, std::unique_ptr<HeadNet> net, KvPages kv)
    : spec_(std::move(spec)),
      net_(std::move(net)),
      kv_(std::move(kv)),
      slots_(net_->state_bytes()) {
  net_->AttachStore(kv_.store());
}

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Step(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  CheckBatch(batch, top_k);
  return CatchTorch("drafting", [&] { return Pass(batch, top_k); });
}

// Whoever asks keeps draft_model.h, so what is wrong here is our own fault.
void Eagle3Model::CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k) {
  AERIE_CHECK(!batch.empty());
  AERIE_CHECK(top_k >= 1 && top_k <= spec_.draft_vocab_size) << "top_k " << top_k;
  batch_slots_.clear();
  for (const StepSequence& part : batch) batch_slots_.push_back(part.slot);
  std::sort(batch_slots_.begin(), batch_slots_.end());
  const auto twice = std::adjacent_find(batch_slots_.begin(), batch_slots_.end());
  AERIE_CHECK(twice == batch_slots_.end()) << "slot " << *twice << " is in it twice";
  for (const StepSequence& part : batch) {
    AERIE_CHECK(!part.tokens.empty());
    for (const int32_t token : part.tokens) {
      AERIE_CHECK(token >= 0 && token < spec_.vocab_size) << "token " << token;
    }
    AERIE_CHECK(part.probes.empty() || part.probes.size() == WantedOf(part))
        << part.probes.size() << " probes for " << WantedOf(part) << " wanted rows";
    for (const int32_t probe : part.probes) {
      AERIE_CHECK(probe >= -1 && probe < spec_.vocab_size) << "probe " << probe;
    }
    for (const PageId page : part.pages) {
      AERIE_CHECK(page >= kNoPage && page < kv_.store().num_pages) << "page " << page;
    }
    if (part.IsExtend()) {
      AERIE_CHECK(!part.fused || !spec_.fc_digest.empty());
      AERIE_CHECK(part.aux.width() == (part.fused ? spec_.hidden_size : aux_width()) &&
                  part.aux.rows() == static_cast<int64_t>(part.tokens.size()) &&
                  part.parents.empty())
          << part.aux.rows() << " rows of " << part.aux.width();
      AERIE_CHECK(part.length >= part.visible.start)
          << "row " << part.length << " lies in front of row " << part.visible.start;
    } else {
      CheckDraftRows(part);
    }
  }
}

void Eagle3Model::CheckDraftRows(const StepSequence& part) const {
  AERIE_CHECK(part.parents.size() == part.tokens.size())
      << part.parents.size() << " parents of " << part.tokens.size() << " draft rows";
  for (const int32_t parent : part.parents) {
    AERIE_CHECK(slots_.at(part.slot).has_state(parent))
        << "draft row " << parent << " of slot " << part.slot << " has no output to start from";
  }
}

// `states`: of the wanted rows, in their order.
void Eagle3Model::Keep(absl::Span<const StepSequence> batch, const std::byte* states) {
  const int64_t bytes = net_->state_bytes();
  for (const StepSequence& part : batch)
    slots_.Reserve(part.slot, part.IsExtend() ? 1 : static_cast<int64_t>(part.tokens.size()));
  // Nothing below fails: from here on the rows count.
  int64_t next = 0;
  for (const NetSequence& sequence : rows_.sequences()) {
    const StepSequence& part = batch[sequence.part];
    const auto wanted = static_cast<int64_t>(WantedOf(part));
    next += wanted;
    if (part.IsExtend()) {
      slots_.BeginAnew(part.slot, wanted > 0 ? states + (next - 1) * bytes : nullptr);
      continue;
    }
    const auto unwanted = static_cast<int64_t>(part.tokens.size()) - wanted;
    for (int64_t i = 0; i < static_cast<int64_t>(part.tokens.size()); ++i) {
      slots_.Append(part.slot, part.parents[i],
                    i < unwanted ? nullptr : states + (next - wanted + i - unwanted) * bytes);
    }
  }
}

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Pass(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  const c10::InferenceMode no_gradients;
  rows_.Assign(batch, slots_, kv_.store().page_rows);
  std::vector<StepOutput> outputs(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) outputs[i].rows.resize(WantedOf(batch[i]));
  const std::byte* const states = net_->Run(
      {.batch = batch, .rows = rows_, .slots = slots_, .top_k = top_k, .tap = tap_}, kv_, outputs);
  Keep(batch, states);
  return outputs;
}

void SetLogitsTap(DraftModel& model, LogitsTap tap) {
  auto* const ours = dynamic_cast<Eagle3Model*>(&model);
  AERIE_CHECK(ours != nullptr) << "only for models of this folder";
  ours->set_tap(std::move(tap));
}

}  // namespace aerie
