// The part of DraftCore that scores rows for their observers, when there is nothing else to do.
#include <limits>
#include <utility>

#include "common/check.h"
#include "server/engine/draft_core.h"

namespace aerie {

bool DraftCore::PrepareTrial() {
  if (!trial_.has_value() && row_observer_ != nullptr) trial_ = row_observer_->TakeTrial();
  return trial_.has_value();
}

void DraftCore::RunTrial(absl::Time now) {
  AERIE_CHECK(batch_.empty() && trial_.has_value());
  const Trial trial = *std::exchange(trial_, std::nullopt);
  row_observer_->OnTrial(Score(trial), now);
}

std::vector<float> DraftCore::Score(const Trial& trial) {
  const auto count = static_cast<int64_t>(trial.tokens.size());
  AERIE_CHECK(count > 0 && trial.rows.rows() == count) << count;
  if (count > options_.max_rows_per_pass) return {};
  // Only pages that are free: no session loses its own for this.
  PageTable table;
  const int64_t base = trial.base_length, end = base + count;
  if (!pages_.Reserve(&table, base, end, std::numeric_limits<int64_t>::max())) return {};
  pages_.MakeWritable(&table, base, end);
  std::vector<int32_t> probes(trial.tokens.begin() + 1, trial.tokens.end());
  probes.push_back(-1);

  StepSequence part;
  part.slot = slots_.Take();
  part.pages = table.pages();
  part.length = base;
  part.visible = {.start = base};
  part.tokens = trial.tokens;
  part.aux = trial.rows;
  part.outputs = Outputs::kEvery;
  part.probes = probes;
  const absl::StatusOr<std::vector<StepOutput>> outputs = model_->Step({part}, /*top_k=*/1);
  model_->ReleaseSlot(part.slot);
  slots_.Give(part.slot);
  pages_.Release(&table);

  std::vector<float> log_probs;
  if (!outputs.ok()) return log_probs;
  for (const RowOutput& row : outputs->front().rows) {
    if (!row.finite) return {};
    log_probs.push_back(row.probe_log_prob);
  }
  log_probs.pop_back();  // nothing is known of what follows the last row
  return log_probs;
}

}  // namespace aerie
