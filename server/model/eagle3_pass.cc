#include "server/model/eagle3_pass.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/model/tensor_view.h"
#include "server/model/top_k.h"
#include "server/model/torch_status.h"

namespace aerie {
namespace {

bool IsExtend(const StepSequence& sequence) { return !sequence.aux.empty(); }

// Sequence numbers with extend rows first, so that their aux hidden states make one block for one
// product.
std::vector<size_t> ExtendFirst(absl::Span<const StepSequence> batch) {
  std::vector<size_t> order(batch.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return IsExtend(batch[i]); });
  return order;
}

}  // namespace

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Step(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  CheckBatch(batch, top_k);
  return CatchTorch("drafting", [&] { return Pass(batch, top_k); });
}

// Whoever asks keeps draft_model.h, so what is wrong here is our own fault.
void Eagle3Model::CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k) const {
  AERIE_CHECK(!batch.empty());
  AERIE_CHECK(top_k >= 1 && top_k <= spec_.draft_vocab_size) << "top_k " << top_k;
  const int64_t width = int64_t{spec_.wiring.size()} * spec_.target_hidden_size;
  for (const StepSequence& sequence : batch) {
    const KvSlot& slot = slots_.at(sequence.slot);
    AERIE_CHECK(sequence.position == slot.length())
        << "rows start at " << sequence.position << " in a slot of " << slot.length();
    AERIE_CHECK(!sequence.tokens.empty());
    for (const int32_t token : sequence.tokens) {
      AERIE_CHECK(token >= 0 && token < spec_.vocab_size) << "token " << token;
    }
    if (IsExtend(sequence)) {
      AERIE_CHECK(sequence.aux.width() == width &&
                  sequence.aux.rows() == static_cast<int64_t>(sequence.tokens.size()))
          << sequence.aux.rows() << " rows of " << sequence.aux.width();
    } else {
      AERIE_CHECK(sequence.tokens.size() == 1 && slot.has_output())
          << "a draft row at " << sequence.position << " has no output to start from";
    }
  }
}

// LibTorch keeps its number of threads by calling thread.
void Eagle3Model::UseThreads() const {
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
}

at::Tensor Eagle3Model::HiddenOf(absl::Span<const StepSequence> batch,
                                 absl::Span<const size_t> order) const {
  int64_t extend_rows = 0;
  for (const StepSequence& sequence : batch) extend_rows += sequence.aux.rows();
  std::vector<at::Tensor> parts;
  if (extend_rows > 0) {
    const int64_t width = int64_t{spec_.wiring.size()} * spec_.target_hidden_size;
    at::Tensor aux = at::empty({extend_rows, width}, at::TensorOptions(net_.dtype()));
    int64_t first = 0;
    for (const size_t i : order) {
      if (!IsExtend(batch[i])) continue;
      CopyRows(batch[i].aux, aux.narrow(0, first, batch[i].aux.rows()));
      first += batch[i].aux.rows();
    }
    parts.push_back(net_.Fuse(aux));
  }
  for (const size_t i : order) {
    if (!IsExtend(batch[i])) parts.push_back(slots_.at(batch[i].slot).output());
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Pass(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  const c10::InferenceMode no_gradients;
  UseThreads();
  const std::vector<size_t> order = ExtendFirst(batch);
  std::vector<int64_t> ids;
  std::vector<NetSequence> sequences;
  for (const size_t i : order) {
    const StepSequence& sequence = batch[i];
    ids.insert(ids.end(), sequence.tokens.begin(), sequence.tokens.end());
    sequences.push_back({&slots_.at(sequence.slot), sequence.position,
                         static_cast<int64_t>(sequence.tokens.size()), sequence.wants_output});
  }
  const at::Tensor z = net_.Forward(HiddenOf(batch, order), Indices(ids), sequences);

  std::vector<StepOutput> outputs(batch.size());
  std::vector<int64_t> output_row(batch.size(), -1);
  NetOutput output;
  if (z.size(0) > 0) {
    output = net_.Output(z);
    const absl::Span<const float> scores = Floats(output.logits);
    const auto vocab = static_cast<size_t>(spec_.draft_vocab_size);
    int64_t next = 0;
    for (const size_t i : order) {
      if (batch[i].wants_output) output_row[i] = next++;
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      if (output_row[i] < 0) continue;
      const absl::Span<const float> row = scores.subspan(output_row[i] * vocab, vocab);
      if (tap_) tap_(i, row);
      auto top = TopK(row, top_k, draft_to_target_);
      outputs[i].finite = top.has_value();
      if (top.has_value()) outputs[i].top = *std::move(top);
    }
  }
  // Nothing below fails: from here on the rows count.
  for (size_t i = 0; i < batch.size(); ++i) {
    slots_.at(batch[i].slot)
        .Commit(batch[i].position + static_cast<int64_t>(batch[i].tokens.size()),
                output_row[i] < 0 ? at::Tensor() : output.feedback.select(0, output_row[i]));
  }
  return outputs;
}

void SetLogitsTap(DraftModel& model, LogitsTap tap) {
  auto* const ours = dynamic_cast<Eagle3Model*>(&model);
  AERIE_CHECK(ours != nullptr) << "only for models of this folder";
  ours->set_tap(std::move(tap));
}

}  // namespace aerie
