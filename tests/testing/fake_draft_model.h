// A drafter made of hashes, for tests of everything above the seam.
//
// It stores rows where the batch says, page by page, and reads them back through the page table, as
// a real one does. So what it drafts depends on every visible row: on the bytes of its aux hidden
// state, its dtype, its token, its position and the order, and for a node of a tree on its own
// ancestors alone. A wrong page table, a page that was written while others used it, a guess that
// was left behind or a wrong parent gives another draft. Whoever breaks a promise of draft_model.h
// fails the running test.
#pragma once

#include <atomic>
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

// "fake-drafter": 8 target layers of width 4, vocabulary 101 of which it drafts 61, wiring
// [1, 4, 7], so rows are 12 elements wide.
DrafterSpec FakeSpec();

struct FakeDraftModelOptions {
  DrafterSpec spec = FakeSpec();
  // Small pages, so that sequences of a test cross their borders.
  KvStore kv_store = {.page_rows = 4, .num_pages = 4096, .page_bytes = 256};
  bool runs_on_any_thread = true;
  // Called at the start of each pass, on the engine thread; may block it.
  std::function<void(absl::Span<const StepSequence>)> before_step;
  // May change what a pass gives.
  std::function<void(std::vector<StepOutput>&)> after_step;
};

// Slot and pass calls come from one thread at a time, or from the same one always if so asked for
// (both checked); what is told of them may be asked from any.
class FakeDraftModel : public DraftModel {
 public:
  explicit FakeDraftModel(FakeDraftModelOptions options = {});
  // Fails the test if a slot is still in use.
  ~FakeDraftModel() override;

  const DrafterSpec& spec() const override { return options_.spec; }
  const KvStore& kv_store() const override { return options_.kv_store; }
  bool runs_on_any_thread() const override { return options_.runs_on_any_thread; }
  void CopyPage(PageId from, PageId to) override;
  void ReleaseSlot(SlotId slot) override;
  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override;

  // The next pass that is tried changes nothing and fails with `status`.
  void FailNextPass(absl::Status status);

  // Slots that hold the states of a round.
  int32_t open_slots() const;
  int64_t pages_copied() const;

  struct PassPart {
    SlotId slot = 0;
    int64_t length = 0;  // committed rows
    int64_t rows = 0;
    bool draft = false;  // draft rows, not extend rows
    Outputs outputs = Outputs::kNone;
    friend bool operator==(const PassPart&, const PassPart&) = default;
  };
  // Of the passes that succeeded, in order.
  std::vector<std::vector<PassPart>> passes() const;
  // What the last pass was asked for.
  int32_t last_top_k() const;

 private:
  // A row in the store.
  struct StoredRow {
    uint64_t content = 0;
    int64_t row = -1;    // its index in its sequence; -1: nothing was ever written here
    bool guess = false;  // a draft row, which no later round may see
  };
  // The output of a row, from which draft rows start.
  struct State {
    uint64_t content = 0;
    bool wanted = false;
    int32_t depth = 0;
    int64_t row = 0;
    std::vector<int64_t> ancestors;  // row indices of the draft rows above it and of itself
  };
  struct Slot {
    State root;
    std::vector<State> drafts;
    int64_t length = 0;
  };

  void CheckThread() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the test and returns false when the batch breaks a promise.
  bool KeepsPromises(absl::Span<const StepSequence> batch, int32_t top_k) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool KeepsPromises(const StepSequence& part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StoredRow& At(const StepSequence& part, int64_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A number for everything that a row at `position` sees.
  uint64_t Attend(const StepSequence& part, int64_t position, int64_t committed,
                  absl::Span<const int64_t> ancestors) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  State ExtendBy(const StepSequence& part, size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  State DraftRow(const StepSequence& part, size_t i, const Slot& slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StepOutput Run(const StepSequence& part, int32_t top_k) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RowOutput Score(const State& state, int32_t top_k, int32_t probe) const;

  const FakeDraftModelOptions options_;
  std::atomic<bool> in_a_pass_{false};
  mutable Mutex mutex_;
  std::vector<StoredRow> store_ ABSL_GUARDED_BY(mutex_);
  std::map<SlotId, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  int64_t pages_copied_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t last_top_k_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status next_failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<PassPart>> passes_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<std::thread::id> thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
