// A drafter for tests that knows one truth: which tensors it wants, in which order, from which
// positions.
//
// Its recordings hold states that say what they are (tensor, position, text), so the head sees how
// far a row is from its truth and scores accordingly, with noise that hangs on row and wiring. It
// also checks what every model relies on: rows are written where they are read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "server/engine/draft_model.h"
#include "server/verify/capture_set.h"
#include "server/verify/verify.h"

namespace aerie {

struct FakeRecording {
  // `tensors` tensors of boundary 0, 1, 2, ..., and a claim of that each. Texts differ in length.
  explicit FakeRecording(int32_t tensors, int32_t sequences, int64_t rows = 60);
  FakeRecording(const FakeRecording&) = delete;
  FakeRecording& operator=(const FakeRecording&) = delete;

  // Row p of every tensor becomes the state of position p - by.
  void ShiftRows(int32_t by);

  CaptureSet captures;

 private:
  void Fill(int32_t shift);
  std::vector<std::vector<int32_t>> tokens_;
};

struct FakeTruth {
  std::vector<int32_t> tensors = {2, 5, 8};
  // Nats a row that a wrong tensor in this place costs; less for the next tensors.
  std::vector<double> costs = {0.3, 1.0, 3.0};
  double shift_cost = 2.0;
  double noise = 0.3;  // of the difference of two wirings, by row and by text
  double bonus = 0.0;  // nats a row that every row gains: of a setting that is right
  double loss_by_depth = 0.4;
  bool finite = true;
};

class FakeHead final : public DraftModel {
 public:
  static constexpr int32_t kHidden = 3;
  static constexpr int32_t kVocab = 1000;
  static constexpr int32_t kFirstOutside =
      970;  // tokens from here on are not in the draft vocabulary
  static constexpr int32_t kPageRows = 4;

  explicit FakeHead(FakeTruth truth, int32_t num_pages = 4096);

  const DrafterSpec& spec() const override { return spec_; }
  const KvStore& kv_store() const override { return store_; }
  bool runs_on_any_thread() const override { return true; }
  void CopyPage(PageId, PageId) override {}
  void ReleaseSlot(SlotId slot) override { slots_.erase(slot); }
  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  int64_t passes() const { return passes_; }
  int64_t largest_pass() const { return largest_pass_; }
  size_t open_slots() const { return slots_.size(); }

 private:
  struct Slot {
    int32_t text = 0;
    int64_t length = 0;  // behind its last extend row
    double loss = 0.0;   // of the last extend row
    int32_t draft_rows = 0;
  };
  RowOutput Score(double loss, uint64_t noise_key, int32_t probe) const;
  std::vector<RowOutput> Extend(const StepSequence& part);
  std::vector<RowOutput> Draft(const StepSequence& part);
  // Row `row` of a sequence in the store: of which text it is; 0: nothing.
  int32_t& TextAt(const StepSequence& part, int64_t row);

  const FakeTruth truth_;
  DrafterSpec spec_;
  KvStore store_;
  std::vector<int32_t> rows_;  // [pages, page rows]
  std::map<SlotId, Slot> slots_;
  int64_t passes_ = 0, largest_pass_ = 0;
};

// A number in -1..1 that hangs on the key alone.
double HashNoise(uint64_t key);

// The head that aerie-verify would be given, with this declared wiring.
VerifyInput InputOf(const FakeRecording& recording, std::vector<int32_t> declared);
// Gives out heads of this truth, whatever the options.
ModelLoader LoaderOf(const FakeTruth& truth);

}  // namespace aerie
