// Numbers for the model's slots: dense, the lowest free one first, and used again.
#pragma once

#include <set>

#include "common/check.h"
#include "server/engine/draft_model.h"

namespace aerie {

// Engine thread only.
class SlotPool {
 public:
  SlotId Take() {
    if (free_.empty()) return next_++;
    return free_.extract(free_.begin()).value();
  }
  void Give(SlotId slot) { AERIE_CHECK(slot < next_ && free_.insert(slot).second) << slot; }
  bool AllFree() const { return static_cast<SlotId>(free_.size()) == next_; }

 private:
  std::set<SlotId> free_;  // of 0 .. next_ - 1
  SlotId next_ = 0;
};

}  // namespace aerie
