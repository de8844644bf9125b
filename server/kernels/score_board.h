// The best scores of rows, and what turns scores into log-probabilities, from scores that come in
// pieces and are kept nowhere: the last product of a step hands on what it has just computed.
#pragma once

#include <cstdint>
#include <vector>

#include "server/kernels/cpu_level.h"
#include "server/kernels/log_sum_exp.h"

namespace aerie {

struct RankedScore {
  float score = 0.0f;
  int32_t id = 0;
};

struct RowScores {
  ScoreSummary summary;               // of the whole row
  const RankedScore* best = nullptr;  // [k], best first, equal scores lower id first
};

// Rows of `count` scores each, cut into chunks of kChunk. Memory is kept between uses.
class ScoreBoard {
 public:
  static constexpr int64_t kChunk = 256;

  // 1 <= k <= count; `threads` may add at the same time.
  void Begin(int64_t rows, int64_t count, int32_t k, int threads);
  int64_t chunks() const { return chunks_; }

  // The scores of one chunk of one row, each chunk once: `scores` [those from chunk x kChunk on, at
  // most kChunk]. Threads of different numbers may add at the same time.
  void Add(int thread, int64_t row, int64_t chunk, const float* scores,
           CpuLevel level = BestCpuLevel());

  // When all chunks have been added, by one thread. Valid until the next Begin().
  RowScores Finish(int64_t row);

 private:
  RankedScore* HeapOf(int thread, int64_t row) {
    return heaps_.data() + (thread * rows_ + row) * k_;
  }
  int32_t& SizeOf(int thread, int64_t row) { return sizes_[thread * rows_ + row]; }
  void Offer(int thread, int64_t row, RankedScore score);

  int64_t rows_ = 0, count_ = 0, chunks_ = 0;
  int32_t k_ = 0;
  int threads_ = 0;
  std::vector<ScoreSummary> summaries_;  // [rows, chunks]
  std::vector<RankedScore> heaps_;       // [threads, rows, k]; the worst of each comes first
  std::vector<int32_t> sizes_;           // [threads, rows]
};

}  // namespace aerie
