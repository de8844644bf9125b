// The rows of one pass: whose they are, where they stand, and which of them are wanted.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/types/span.h"
#include "server/model/kv_cache.h"
#include "server/model/rope_table.h"

namespace aerie {

// One sequence's rows of a pass; the rows of all sequences lie behind each other.
struct NetSequence {
  KvSlot* slot = nullptr;
  int64_t position = 0;  // of the first row
  int64_t rows = 0;
  bool wants_output = false;  // of the last row

  int64_t end() const { return position + rows; }
};

// Which rows a layer computes beyond their keys and values.
class RowChoice {
 public:
  // All of `rows` rows.
  explicit RowChoice(int64_t rows) : count_(rows), every_(true) {}
  // Of each sequence that wants output the last. The others need no more than their keys and values
  // in the last layer, as no other row looks at what comes behind.
  static RowChoice Wanted(absl::Span<const NetSequence> sequences);

  int64_t count() const { return count_; }
  // Whether these are all rows of the pass, so that there is nothing to pick.
  bool every() const { return every_; }
  at::Tensor Pick(const at::Tensor& x) const { return every_ ? x : x.index_select(0, rows_); }
  Turns Pick(const Turns& turns) const { return every_ ? turns : turns.Rows(rows_); }

 private:
  int64_t count_;
  bool every_;
  at::Tensor rows_;  // numbers; undefined with every_
};

// Of all rows of a pass.
Turns TurnsOf(absl::Span<const NetSequence> sequences, RopeTable& rope);

}  // namespace aerie
