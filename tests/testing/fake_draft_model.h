// A drafter made of hashes, for tests of everything above the seam.
//
// A token it drafts depends on every row of the slot: on the bytes of each aux hidden state, its
// dtype, its token, its position and the order. Whoever mixes up two sessions, leaves a guess in a
// slot, sends a row twice or shifts a position gets another draft. Whoever breaks a promise of
// draft_model.h fails the running test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "server/engine/draft_model.h"

namespace aerie {

// "fake-drafter": 8 target layers of width 4, vocabulary 101, wiring [1, 4, 7], so rows are 12
// elements wide.
DrafterSpec FakeSpec();

struct FakeDraftModelOptions {
  DrafterSpec spec = FakeSpec();
  int32_t max_slots = 1024;
  // Called at the start of each pass, on the engine's thread; may block it.
  std::function<void(absl::Span<const StepSequence>)> before_step;
  // May change what a pass gives.
  std::function<void(std::vector<StepOutput>&)> after_step;
};

// Slot and pass calls come from one thread (checked); what is told of them may be asked from any.
class FakeDraftModel : public DraftModel {
 public:
  explicit FakeDraftModel(FakeDraftModelOptions options = {});
  // Fails the test if a slot is still open.
  ~FakeDraftModel() override;

  const DrafterSpec& spec() const override { return options_.spec; }
  absl::StatusOr<SlotId> OpenSlot() override;
  void CloseSlot(SlotId slot) override;
  int64_t SlotLength(SlotId slot) const override;
  void Truncate(SlotId slot, int64_t length) override;
  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  // The next pass that is tried changes nothing and fails with `status`.
  void FailNextPass(absl::Status status);

  int32_t open_slots() const;
  int64_t total_slots_opened() const;

  struct PassPart {
    SlotId slot = 0;
    int64_t position = 0;
    int64_t rows = 0;
    bool draft = false;  // a draft row, not extend rows
    bool wants_output = false;
    friend bool operator==(const PassPart&, const PassPart&) = default;
  };
  // Of the passes that succeeded, in order.
  std::vector<std::vector<PassPart>> passes() const;

 private:
  struct Slot {
    std::vector<uint64_t> rows;         // [i] stands for rows 0..i together
    std::optional<int64_t> output_row;  // the row whose output is kept for a draft row
  };

  void CheckThread() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the test and returns false when the batch breaks a promise.
  bool KeepsPromises(absl::Span<const StepSequence> batch, int32_t top_k) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StepOutput Append(const StepSequence& sequence, int32_t top_k)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FakeDraftModelOptions options_;
  mutable Mutex mutex_;
  std::map<SlotId, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  int64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status next_failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<PassPart>> passes_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<std::thread::id> thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
