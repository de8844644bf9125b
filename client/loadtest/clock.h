// Time as the load tester sees it, so that tests decide what it is.
#pragma once

#include "absl/time/time.h"

namespace aerie::loadtest {

// Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
  // Returns at `until` or a little later, at once when it has passed.
  virtual void SleepUntil(absl::Time until) = 0;
};

// The machine's. A thread that sleeps on it wakes within microseconds where the machine is idle:
// the default slack of 50 us would be a good part of a round.
Clock& RealClock();

}  // namespace aerie::loadtest
