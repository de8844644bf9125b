// Sequences of random rows on a loaded drafter, in the state in which a draft step is measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/draft_model.h"

namespace aerie {

// `count` sequences with `context` rows each, whose pages are copies of one another's.
class BenchSequences {
 public:
  BenchSequences(DraftModel& model, int64_t count, int64_t context);

  // Brings the last row of every sequence once more, so that draft rows start from it.
  void ExtendLast();
  // One draft row of every sequence behind its last row: a draft step.
  void DraftOnce();
  // `rows` rows behind the context of the first sequence, of which the last one's output is wanted.
  void Extend(int64_t rows);

 private:
  void Step(const std::vector<StepSequence>& batch);
  // Rows [first, first + rows) of the sequence, of which all are the same few.
  StepSequence Rows(int64_t sequence, int64_t first, int64_t rows, Outputs outputs);

  DraftModel& model_;
  int64_t context_;
  int64_t width_;
  std::string aux_;  // float32, of kMostRows rows
  std::vector<int32_t> tokens_;
  std::vector<std::vector<PageId>> pages_;  // of each sequence
};

}  // namespace aerie
