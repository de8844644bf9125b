// The demo's head and the recorded rows of its evaluation, for tests of the model.
//
// AERIE_SOURCE_DIR leads to the head and the recording, AERIE_TARGET to the target whose embedding
// it borrows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/checkpoint/checkpoint.h"
#include "server/engine/draft_model.h"
#include "server/model/eagle3_model.h"

namespace aerie {

// A path below the repository's root.
std::string SourcePath(const std::string& relative);

// Ends the test program with a message when the files are not there: a test without its data has
// not passed.
const Checkpoint& DemoCheckpoint();
std::unique_ptr<DraftModel> LoadDemo(const ModelOptions& options = {
                                         .dtype = ComputeDType::kFloat32});
// One for all tests of a program, float32. Every test closes the slots that it opens.
DraftModel& SharedDemo();

// One recorded sequence. Row i pairs the state of position i with the token of position i + 1.
struct RecordedSequence {
  int32_t prompt_tokens = 0;
  std::vector<int32_t> tokens;  // of all positions
  HiddenRows aux;               // of all positions

  // The tokens and states of rows [first, first + count).
  absl::Span<const int32_t> RowTokens(int64_t first, int64_t count) const;
  HiddenRows RowAux(int64_t first, int64_t count) const { return aux.Slice(first, count); }
};
const std::vector<RecordedSequence>& Recording();

// One sequence as the engine keeps it: a slot, and pages that lie scattered over the store. All of
// it goes back when the object ends.
class OpenedSlot {
 public:
  explicit OpenedSlot(DraftModel& model);
  ~OpenedSlot();
  OpenedSlot(const OpenedSlot&) = delete;
  OpenedSlot& operator=(const OpenedSlot&) = delete;

  SlotId id() const { return id_; }
  int64_t length() const { return length_; }
  // Rows from `length` on are forgotten.
  void Truncate(int64_t length) { length_ = length; }
  // The sequence begins at `row`, with row `first` of what it is given; before any other.
  void StartAt(int64_t row, int64_t first);
  void StartAt(int64_t row) { StartAt(row, row); }
  VisibleRows& visible() { return visible_; }
  std::vector<PageId>& pages() { return pages_; }
  // The first `length` rows of `other`, on copies of its pages.
  void ForkOf(const OpenedSlot& other, int64_t length);

  // Parts of a pass, valid until the next call of either. The rows of `ExtendRows` count once
  // Took() has been told of them.
  StepSequence ExtendRows(const RecordedSequence& sequence, int64_t count, Outputs outputs);
  StepSequence DraftRows(std::vector<int32_t> tokens, std::vector<int32_t> parents);
  // One row behind the newest draft row.
  StepSequence DraftRow(int32_t token) { return DraftRows({token}, {drafted_ - 1}); }
  void Took(int64_t rows) { length_ += rows; }

  // One pass with `count` rows of `sequence`, which continue the slot. Aborts when it fails.
  std::optional<ScoredToken> Extend(const RecordedSequence& sequence, int64_t count,
                                    bool wants_output);
  ScoredToken Draft(int32_t token);
  // k tokens behind the last row of an Extend() that gave `first`.
  std::vector<ScoredToken> Chain(ScoredToken first, int32_t k);

 private:
  void MakeRoom(int64_t rows);

  DraftModel& model_;
  SlotId id_ = 0;
  std::vector<PageId> pages_;
  int64_t length_ = 0;
  int64_t shift_ = 0;  // of its rows against those that it is given
  int32_t drafted_ = 0;
  VisibleRows visible_;
  std::vector<int32_t> tokens_, parents_;
};

// What a slot of its own drafts behind rows 0..slot of `sequence`.
std::vector<ScoredToken> DraftAlone(DraftModel& model, const RecordedSequence& sequence,
                                    int64_t slot, int32_t k);

std::vector<int32_t> TokensOf(const std::vector<ScoredToken>& chain);

}  // namespace aerie
