// What the sessions of a load test send, and what their made-up targets answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/draft_call.h"
#include "common/draft_tree.h"
#include "common/manifest.h"

namespace aerie::loadtest {

// What the target made of one proposal.
struct Verdict {
  int32_t accepted = 0;
  // Accepted tokens and the bonus, with their rows. Without the bonus when the sequence ends before
  // it. Valid until the next call of the sequence.
  RowBatch committed;
  // Nothing is left to predict: these tokens go with the closing call.
  bool finished = false;
};

// One session's tokens and rows. One thread at a time.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // Rows of the prompt; with them the first generated token is committed.
  virtual RowBatch Prompt() = 0;
  // Lets the target look at a draft, which may be empty, and moves on.
  virtual Verdict Verify(const DraftTree& draft) = 0;
  // Rows [first, last) that have been given out before. Valid until the next call.
  virtual RowBatch Rows(int64_t first, int64_t last) = 0;
};

// Any thread.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual const Manifest& manifest() const = 0;
  // Sequences worth running once; 0: any number.
  virtual int64_t size() const = 0;
  // The same number gives the same sequence, whoever runs it.
  virtual std::unique_ptr<Sequence> NewSequence(int64_t number) const = 0;
};

}  // namespace aerie::loadtest
