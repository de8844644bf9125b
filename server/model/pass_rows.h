// The rows of one pass: whose they are, where they stand, what they see, and which are wanted.
//
// The rows of all sequences lie behind each other, extend rows first, so that their aux hidden
// states make one block. A row's place in its sequence is its row index; where it stands for RoPE
// is its position, which two draft rows may share.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"
#include "server/kernels/seen_rows.h"
#include "server/model/rotation.h"
#include "server/model/round_slots.h"

namespace aerie {

// One sequence's rows of a pass.
struct NetSequence {
  size_t part = 0;  // of the batch
  absl::Span<const PageId> pages;
  int64_t first_row = 0;  // its row index; the others follow
  int64_t rows = 0;
  int64_t first = 0;  // its number in the pass
};

// The rows of a batch. `batch` must outlive it. Memory is kept from one batch to the next.
class PassRows {
 public:
  PassRows() = default;
  PassRows(absl::Span<const StepSequence> batch, const RoundSlots& slots, int32_t page_rows) {
    Assign(batch, slots, page_rows);
  }
  PassRows(const PassRows&) = delete;
  PassRows& operator=(const PassRows&) = delete;

  // `slots` as they were before the pass; `page_rows` of the store.
  void Assign(absl::Span<const StepSequence> batch, const RoundSlots& slots, int32_t page_rows);

  const std::vector<NetSequence>& sequences() const { return sequences_; }
  int64_t count() const { return static_cast<int64_t>(ids_.size()); }
  // Of every row: its token, where it stands, and the rows that its sequence has when the row is
  // the newest on its path.
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::vector<int64_t>& positions() const { return positions_; }
  const std::vector<int64_t>& lengths() const { return lengths_; }
  const std::vector<SeenRows>& seen() const { return seen_; }
  // Numbers of the wanted rows, ascending.
  const std::vector<int64_t>& wanted() const { return wanted_; }

 private:
  void AddExtend(const StepSequence& part);
  void AddDraft(const StepSequence& part, const RoundSlot& slot);
  void CheckPages(const StepSequence& part, const NetSequence& rows, int32_t page_rows) const;

  std::vector<NetSequence> sequences_;
  std::vector<int64_t> ids_, positions_, lengths_;
  std::vector<SeenRows> seen_;
  std::vector<int64_t> wanted_;
  std::vector<int64_t> path_rows_;  // what `seen_` points to, row after row
  std::vector<int32_t> path_;       // of one row
};

// Which rows a layer computes beyond their keys and values.
class RowChoice {
 public:
  // All of `rows` rows.
  explicit RowChoice(int64_t rows);
  // Those that are wanted. The others need no more than their keys and values in the last layer,
  // as no other row looks at what comes behind.
  static RowChoice Wanted(const PassRows& rows);

  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }
  // Whether these are all rows of the pass, so that there is nothing to pick.
  bool every() const { return !indices_.defined(); }
  // Ascending.
  const std::vector<int64_t>& numbers() const { return numbers_; }
  at::Tensor Pick(const at::Tensor& x) const { return every() ? x : x.index_select(0, indices_); }
  Turns Pick(const Turns& turns) const { return every() ? turns : turns.Rows(indices_); }

 private:
  std::vector<int64_t> numbers_;
  at::Tensor indices_;  // the same; undefined with every()
};

}  // namespace aerie
