#include "client/loadtest/clock.h"

#include <sys/prctl.h>

#include "absl/time/clock.h"

namespace aerie::loadtest {
namespace {

class MachineClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void SleepUntil(absl::Time until) override {
    thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    static_cast<void>(precise);  // without it wake-ups are only less exact
    absl::SleepFor(until - absl::Now());
  }
};

}  // namespace

Clock& RealClock() {
  static MachineClock clock;
  return clock;
}

}  // namespace aerie::loadtest
