#include "server/model/eagle3_pass.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "common/check.h"
#include "server/model/tensor_view.h"
#include "server/model/top_k.h"
#include "server/model/torch_status.h"

namespace aerie {
namespace {

// What is wanted of one row.
struct Question {
  size_t part, row;  // of the batch, and of its wanted rows
  int64_t number;    // of all wanted rows of the pass
  int32_t probe = -1;
};

size_t WantedOf(const StepSequence& part) {
  return part.outputs == Outputs::kNone   ? 0
         : part.outputs == Outputs::kLast ? 1
                                          : part.tokens.size();
}

// In the order of the batch.
std::vector<Question> QuestionsOf(absl::Span<const StepSequence> batch, const PassRows& rows) {
  std::vector<int64_t> first_of(batch.size());
  int64_t next = 0;
  for (const NetSequence& sequence : rows.sequences()) {
    first_of[sequence.part] = next;
    next += static_cast<int64_t>(WantedOf(batch[sequence.part]));
  }
  std::vector<Question> questions;
  for (size_t part = 0; part < batch.size(); ++part) {
    for (size_t row = 0; row < WantedOf(batch[part]); ++row) {
      questions.push_back({part, row, first_of[part] + static_cast<int64_t>(row)});
      if (!batch[part].probes.empty()) questions.back().probe = batch[part].probes[row];
    }
  }
  return questions;
}

const std::byte* RowOf(const at::Tensor& matrix, int64_t row) {
  return static_cast<const std::byte*>(matrix.const_data_ptr()) +
         row * matrix.size(1) * matrix.element_size();
}

}  // namespace

Eagle3Model::Eagle3Model(DrafterSpec spec, Eagle3Net net, KvPages kv,
                         std::vector<int32_t> draft_to_target, int32_t threads)
    : spec_(std::move(spec)),
      net_(std::move(net)),
      kv_(std::move(kv)),
      slots_(spec_.hidden_size * static_cast<int64_t>(at::elementSize(net_.dtype()))),
      draft_to_target_(std::move(draft_to_target)),
      threads_(threads) {}

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Step(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  CheckBatch(batch, top_k);
  return CatchTorch("drafting", [&] { return Pass(batch, top_k); });
}

// Whoever asks keeps draft_model.h, so what is wrong here is our own fault.
void Eagle3Model::CheckBatch(absl::Span<const StepSequence> batch, int32_t top_k) const {
  AERIE_CHECK(!batch.empty());
  AERIE_CHECK(top_k >= 1 && top_k <= spec_.draft_vocab_size) << "top_k " << top_k;
  std::set<SlotId> slots;
  for (const StepSequence& part : batch) {
    AERIE_CHECK(slots.insert(part.slot).second) << "slot " << part.slot << " is in it twice";
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
      AERIE_CHECK(part.aux.width() == aux_width() &&
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

// LibTorch keeps its number of threads by calling thread.
void Eagle3Model::UseThreads() const {
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
}

at::Tensor Eagle3Model::HiddenOf(absl::Span<const StepSequence> batch, const PassRows& rows) const {
  int64_t extend_rows = 0;
  for (const StepSequence& part : batch) extend_rows += part.aux.rows();
  std::vector<at::Tensor> parts;
  if (extend_rows > 0) {
    at::Tensor aux = at::empty({extend_rows, aux_width()}, at::TensorOptions(net_.dtype()));
    for (const NetSequence& sequence : rows.sequences()) {
      const HiddenRows& own = batch[sequence.part].aux;
      if (!own.empty()) CopyRows(own, aux.narrow(0, sequence.first, own.rows()));
    }
    parts.push_back(net_.Fuse(aux));
  }
  if (extend_rows < rows.count()) {
    at::Tensor states =
        at::empty({rows.count() - extend_rows, spec_.hidden_size}, at::TensorOptions(net_.dtype()));
    auto* to = static_cast<std::byte*>(states.mutable_data_ptr());
    const int64_t bytes = spec_.hidden_size * static_cast<int64_t>(states.element_size());
    for (const NetSequence& sequence : rows.sequences()) {
      for (const int32_t parent : batch[sequence.part].parents) {
        std::memcpy(to, slots_.at(batch[sequence.part].slot).state(parent), bytes);
        to += bytes;
      }
    }
    parts.push_back(states);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

std::vector<StepOutput> Eagle3Model::Judge(absl::Span<const StepSequence> batch,
                                           const PassRows& rows, const at::Tensor& logits,
                                           int32_t top_k) const {
  std::vector<StepOutput> outputs(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) outputs[i].rows.resize(WantedOf(batch[i]));
  const std::vector<Question> questions = QuestionsOf(batch, rows);
  const absl::Span<const float> scores = Floats(logits);
  const auto vocab = static_cast<size_t>(spec_.draft_vocab_size);
  if (tap_) {
    for (const Question& asked : questions)
      tap_(asked.part, scores.subspan(asked.number * vocab, vocab));
  }
  at::parallel_for(0, static_cast<int64_t>(questions.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Question& asked = questions[i];
      outputs[asked.part].rows[asked.row] = JudgeRow(scores.subspan(asked.number * vocab, vocab),
                                                     top_k, asked.probe, draft_to_target_);
    }
  });
  return outputs;
}

void Eagle3Model::Keep(absl::Span<const StepSequence> batch, const PassRows& rows,
                       const at::Tensor& feedback) {
  for (const StepSequence& part : batch)
    slots_.Reserve(part.slot, part.IsExtend() ? 1 : static_cast<int64_t>(part.tokens.size()));
  // Nothing below fails: from here on the rows count.
  int64_t next = 0;
  for (const NetSequence& sequence : rows.sequences()) {
    const StepSequence& part = batch[sequence.part];
    const auto wanted = static_cast<int64_t>(WantedOf(part));
    next += wanted;
    if (part.IsExtend()) {
      slots_.BeginAnew(part.slot, wanted > 0 ? RowOf(feedback, next - 1) : nullptr);
      continue;
    }
    const auto unwanted = static_cast<int64_t>(part.tokens.size()) - wanted;
    for (int64_t i = 0; i < static_cast<int64_t>(part.tokens.size()); ++i) {
      slots_.Append(part.slot, part.parents[i],
                    i < unwanted ? nullptr : RowOf(feedback, next - wanted + i - unwanted));
    }
  }
}

absl::StatusOr<std::vector<StepOutput>> Eagle3Model::Pass(absl::Span<const StepSequence> batch,
                                                          int32_t top_k) {
  const c10::InferenceMode no_gradients;
  UseThreads();
  const PassRows rows(batch, slots_, kv_.store().page_rows);
  const at::Tensor z = net_.Forward(HiddenOf(batch, rows), rows, kv_);
  std::vector<StepOutput> outputs(batch.size());
  at::Tensor feedback;
  if (z.size(0) > 0) {
    const NetOutput output = net_.Output(z);
    outputs = Judge(batch, rows, output.logits, top_k);
    feedback = output.feedback.contiguous();
  }
  Keep(batch, rows, feedback);
  return outputs;
}

void SetLogitsTap(DraftModel& model, LogitsTap tap) {
  auto* const ours = dynamic_cast<Eagle3Model*>(&model);
  AERIE_CHECK(ours != nullptr) << "only for models of this folder";
  ours->set_tap(std::move(tap));
}

}  // namespace aerie
