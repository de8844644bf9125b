#include "server/kernels/score_board.h"

#include <algorithm>
#include <cmath>

namespace aerie {
namespace {

bool Better(const RankedScore& a, const RankedScore& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

template <typename T>
void Grow(std::vector<T>& vector, int64_t size) {
  if (vector.size() < static_cast<size_t>(size)) vector.resize(size);
}

}  // namespace

void ScoreBoard::Begin(int64_t rows, int64_t count, int32_t k, int threads) {
  rows_ = rows;
  count_ = count;
  chunks_ = (count + kChunk - 1) / kChunk;
  k_ = k;
  threads_ = threads;
  Grow(summaries_, rows * chunks_);
  Grow(heaps_, threads * rows * k);
  Grow(sizes_, threads * rows);
  std::fill_n(sizes_.begin(), threads * rows, 0);
}

void ScoreBoard::Add(int thread, int64_t row, int64_t chunk, const float* scores, CpuLevel level) {
  const int64_t first = chunk * kChunk, size = std::min(kChunk, count_ - first);
  ScoreSummary& summary = summaries_[row * chunks_ + chunk];
  summary = Summarise(scores, size, level);
  if (!summary.finite) return;
  const RankedScore* const worst = HeapOf(thread, row);
  const int32_t& held = SizeOf(thread, row);
  // Most chunks hold nothing that is good enough. An equal score may be, with a lower id.
  if (held == k_ && summary.largest < worst->score) return;
  for (int64_t i = 0; i < size; ++i) {
    if (held == k_ && scores[i] < worst->score) continue;
    Offer(thread, row, {scores[i], static_cast<int32_t>(first + i)});
  }
}

void ScoreBoard::Offer(int thread, int64_t row, RankedScore score) {
  RankedScore* const heap = HeapOf(thread, row);
  int32_t& size = SizeOf(thread, row);
  if (size == k_) {
    if (!Better(score, heap[0])) return;
    std::pop_heap(heap, heap + size, Better);
    heap[size - 1] = score;
  } else {
    heap[size++] = score;
  }
  std::push_heap(heap, heap + size, Better);
}

RowScores ScoreBoard::Finish(int64_t row) {
  RowScores out;
  const ScoreSummary* const parts = summaries_.data() + row * chunks_;
  out.summary = parts[0];
  for (int64_t i = 1; i < chunks_; ++i) {
    out.summary.finite = out.summary.finite && parts[i].finite;
    out.summary.largest = std::max(out.summary.largest, parts[i].largest);
  }
  if (!out.summary.finite) return out;
  // In the order of the chunks, so that it does not matter which thread had which.
  double total = 0.0;
  for (int64_t i = 0; i < chunks_; ++i)
    total += std::exp(parts[i].log_sum_exp - out.summary.largest);
  out.summary.log_sum_exp = out.summary.largest + std::log(total);
  for (int thread = 1; thread < threads_; ++thread) {
    const RankedScore* const heap = HeapOf(thread, row);
    for (int32_t i = 0; i < SizeOf(thread, row); ++i) Offer(0, row, heap[i]);
  }
  RankedScore* const best = HeapOf(0, row);
  std::sort(best, best + SizeOf(0, row), Better);
  out.best = best;
  return out;
}

}  // namespace aerie
