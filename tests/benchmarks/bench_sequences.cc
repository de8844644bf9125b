#include "tests/benchmarks/bench_sequences.h"

#include <algorithm>
#include <random>

#include "common/check.h"

namespace aerie {
namespace {

constexpr int64_t kMostRows = 512;  // of one extend

}  // namespace

BenchSequences::BenchSequences(DraftModel& model, int64_t count, int64_t context)
    : model_(model),
      context_(context),
      width_(int64_t{model.spec().wiring.size()} * model.spec().target_hidden_size) {
  std::mt19937 random(7);
  std::vector<float> values(kMostRows * width_);
  for (float& value : values) value = static_cast<float>(random() % 2048) / 1024.0f - 1.0f;
  aux_.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  for (int64_t i = 0; i < kMostRows; ++i)
    tokens_.push_back(static_cast<int32_t>(random() % model.spec().vocab_size));

  const int64_t page_rows = model.kv_store().page_rows;
  const int64_t pages = (context + kMostRows + page_rows) / page_rows;
  AERIE_CHECK(count * pages <= model.kv_store().num_pages)
      << count << " sequences of " << pages << " pages; give the model more KV memory";
  PageId next = 0;
  for (int64_t i = 0; i < count; ++i) {
    pages_.emplace_back();
    for (int64_t page = 0; page < pages; ++page) pages_.back().push_back(next++);
  }
  for (int64_t first = 0; first < context; first += kMostRows)
    Step({Rows(0, first, std::min(kMostRows, context - first), Outputs::kNone)});
  for (int64_t i = 1; i < count; ++i) {
    for (int64_t page = 0; page * page_rows < context; ++page)
      model.CopyPage(pages_[0][page], pages_[i][page]);
  }
}

StepSequence BenchSequences::Rows(int64_t sequence, int64_t first, int64_t rows, Outputs outputs) {
  StepSequence part{
      .slot = static_cast<SlotId>(sequence), .pages = pages_[sequence], .length = first};
  part.tokens = absl::MakeSpan(tokens_).first(rows);
  const auto aux = HiddenRows::Create(DType::kF32, rows, width_,
                                      std::string_view(aux_).substr(0, rows * width_ * 4));
  AERIE_CHECK(aux.ok());
  part.aux = *aux;
  part.outputs = outputs;
  return part;
}

void BenchSequences::Step(const std::vector<StepSequence>& batch) {
  const auto outputs = model_.Step(batch, 1);
  AERIE_CHECK(outputs.ok()) << std::string(outputs.status().message());
}

void BenchSequences::ExtendLast() {
  std::vector<StepSequence> batch;
  for (size_t i = 0; i < pages_.size(); ++i)
    batch.push_back(Rows(static_cast<int64_t>(i), context_ - 1, 1, Outputs::kLast));
  Step(batch);
}

void BenchSequences::DraftOnce() {
  static constexpr int32_t kRootNode = -1;
  std::vector<StepSequence> batch;
  for (size_t i = 0; i < pages_.size(); ++i) {
    StepSequence part{.slot = static_cast<SlotId>(i), .pages = pages_[i], .length = context_};
    part.tokens = {tokens_.data() + i % tokens_.size(), 1};
    part.parents = {&kRootNode, 1};
    part.outputs = Outputs::kEvery;
    batch.push_back(part);
  }
  Step(batch);
}

void BenchSequences::Extend(int64_t rows) { Step({Rows(0, context_, rows, Outputs::kLast)}); }

}  // namespace aerie
