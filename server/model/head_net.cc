#include "server/model/head_net.h"

namespace aerie {

size_t WantedOf(const StepSequence& part) {
  return part.outputs == Outputs::kNone   ? 0
         : part.outputs == Outputs::kLast ? 1
                                          : part.tokens.size();
}

KvShape KvShapeOf(const HeadSpec& spec, KvElement element) {
  const bool latent = spec.attention.value == AttentionKind::kLatent;
  return {.layers = spec.num_layers.value,
          .kv_heads = spec.num_kv_heads.value,
          .key_dim = spec.head_dim.value,
          .value_dim = latent ? spec.latent.v_head_dim.value : spec.head_dim.value,
          .element = element};
}

void Questions::Assign(absl::Span<const StepSequence> batch, const PassRows& rows) {
  first_of_.assign(batch.size(), 0);
  all_.clear();
  int64_t next = 0;
  for (const NetSequence& sequence : rows.sequences()) {
    first_of_[sequence.part] = next;
    next += static_cast<int64_t>(WantedOf(batch[sequence.part]));
  }
  for (size_t part = 0; part < batch.size(); ++part) {
    for (size_t row = 0; row < WantedOf(batch[part]); ++row) {
      all_.push_back({part, row, first_of_[part] + static_cast<int64_t>(row)});
      if (!batch[part].probes.empty()) all_.back().probe = batch[part].probes[row];
    }
  }
}

}  // namespace aerie
