#include "server/model/torch_net.h"

#include <ATen/Parallel.h>

#include <cstring>
#include <utility>

#include "server/model/tensor_view.h"
#include "server/model/top_k.h"

namespace aerie {

TorchNet::TorchNet(Eagle3Net net, const Checkpoint& checkpoint)
    : net_(std::move(net)),
      hidden_size_(checkpoint.spec.hidden_size.value),
      draft_to_target_(checkpoint.draft_to_target) {}

int64_t TorchNet::state_bytes() const {
  return hidden_size_ * static_cast<int64_t>(at::elementSize(net_.dtype()));
}

at::Tensor TorchNet::HiddenOf(const NetInput& input) const {
  std::vector<at::Tensor> parts;
  int64_t extend_rows = 0;
  // Neighbours that came alike go through fc together, or past it.
  const std::vector<NetSequence>& sequences = input.rows.sequences();
  for (size_t i = 0; i < sequences.size();) {
    const StepSequence& first = input.batch[sequences[i].part];
    if (!first.IsExtend()) break;
    size_t end = i;
    int64_t rows = 0;
    for (; end < sequences.size(); ++end) {
      const StepSequence& part = input.batch[sequences[end].part];
      if (!part.IsExtend() || part.fused != first.fused) break;
      rows += part.aux.rows();
    }
    at::Tensor aux = at::empty({rows, first.aux.width()}, at::TensorOptions(net_.dtype()));
    for (; i < end; ++i) {
      const HiddenRows& own = input.batch[sequences[i].part].aux;
      CopyRows(own, aux.narrow(0, sequences[i].first - extend_rows, own.rows()));
    }
    parts.push_back(first.fused ? aux : net_.Fuse(aux));
    extend_rows += rows;
  }
  if (extend_rows < input.rows.count()) {
    at::Tensor states = at::empty({input.rows.count() - extend_rows, hidden_size_},
                                  at::TensorOptions(net_.dtype()));
    auto* to = static_cast<std::byte*>(states.mutable_data_ptr());
    const int64_t bytes = state_bytes();
    for (const NetSequence& sequence : input.rows.sequences()) {
      const StepSequence& part = input.batch[sequence.part];
      for (const int32_t parent : part.parents) {
        std::memcpy(to, input.slots.at(part.slot).state(parent), bytes);
        to += bytes;
      }
    }
    parts.push_back(states);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

void TorchNet::Judge(const NetInput& input, const at::Tensor& logits,
                     std::vector<StepOutput>& outputs) {
  questions_.Assign(input.batch, input.rows);
  const std::vector<Question>& questions = questions_.all();
  const absl::Span<const float> scores = Floats(logits);
  const size_t vocab = draft_to_target_.size();
  if (input.tap) {
    for (const Question& asked : questions)
      input.tap(asked.part, scores.subspan(asked.number * vocab, vocab));
  }
  at::parallel_for(0, static_cast<int64_t>(questions.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Question& asked = questions[i];
      outputs[asked.part].rows[asked.row] = JudgeRow(scores.subspan(asked.number * vocab, vocab),
                                                     input.top_k, asked.probe, draft_to_target_);
    }
  });
}

const std::byte* TorchNet::Run(const NetInput& input, KvPages& kv,
                               std::vector<StepOutput>& outputs) {
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  const at::Tensor z = net_.Forward(HiddenOf(input), input.rows, kv);
  if (z.size(0) == 0) return nullptr;
  const NetOutput output = net_.Output(z);
  Judge(input, output.logits, outputs);
  feedback_ = output.feedback.contiguous();
  return static_cast<const std::byte*>(feedback_.const_data_ptr());
}

}  // namespace aerie
