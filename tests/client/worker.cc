#include "tests/client/worker.h"

#include "common/check.h"

namespace aerie {
namespace {

constexpr int64_t kWidth = 2 * FakeDraftService::kHiddenSize;

}  // namespace

void Worker::Grow(int64_t wanted) {
  for (int64_t row = length(); row < wanted; ++row) {
    const auto mixed = static_cast<uint64_t>(row + 1) * 2654435761u * seed_;
    tokens_.push_back(static_cast<int32_t>((mixed >> 7) % FakeDraftService::kVocabulary));
    for (int64_t column = 0; column < kWidth; ++column) {
      const float value = static_cast<float>(row) + 0.01f * static_cast<float>(column) +
                          10'000.0f * static_cast<float>(seed_);
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
}

RowBatch Worker::Rows(int64_t first, int64_t last) const {
  const auto count = last - first;
  const auto row_bytes = kWidth * static_cast<int64_t>(sizeof(float));
  auto rows =
      HiddenRows::Create(DType::kF32, count, kWidth,
                         std::string_view(bytes_).substr(static_cast<size_t>(first * row_bytes),
                                                         static_cast<size_t>(count * row_bytes)));
  AERIE_CHECK(rows.ok()) << rows.status();
  return {
      absl::MakeConstSpan(tokens_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
      *rows};
}

DraftInput Worker::Call(int64_t first, int32_t k) const {
  const RowBatch batch = Rows(first, length());
  DraftInput input;
  input.base_length = first;
  input.tokens = batch.tokens;
  input.rows = batch.rows;
  input.k = k;
  return input;
}

RowSource Worker::Source() const {
  return
      [this](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> { return Rows(first, last); };
}

std::vector<int32_t> Worker::ExpectedDraft(int32_t k) const {
  std::vector<int32_t> draft;
  for (int32_t depth = 0; depth < k; ++depth) {
    draft.push_back(FakeDraftService::Proposal(tokens_, depth));
  }
  return draft;
}

}  // namespace aerie
