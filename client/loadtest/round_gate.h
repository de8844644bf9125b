// Decides when each session's next round is to start, when the run ends, and which part of it
// counts.
//
// Of an open loop the starts come from the schedule, whatever the server does: a round that finds
// all sessions busy starts late, and its intended start says by how much. Of a closed one each
// session starts when its last round is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/loadtest/arrival_schedule.h"
#include "client/loadtest/clock.h"
#include "client/loadtest/options.h"

namespace aerie::loadtest {

struct RoundStart {
  absl::Time intended;
  absl::Time ready;  // when the session was free for it
};

// Any thread, but Begin().
class RoundGate {
 public:
  RoundGate(const LoadOptions& options, Clock* clock);

  // Starts the run, before any worker.
  void Begin();
  // Nothing is started any more; what runs ends at its next round. Signal-safe.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Before a session is opened: waits until the load has room for worker `worker`. False: the run
  // is over for it.
  bool WaitToOpen(int32_t worker);
  // Waits until the worker's next round is to start. Empty: its session ends here.
  std::optional<RoundStart> WaitToStart(int32_t worker);
  // A worker found nothing left to do: from here on the load falls, and nothing counts.
  void BeginDrain();
  // How many rounds an open loop meant to start in [begin, end), from the start of the run.
  int64_t StartsWithin(absl::Duration begin, absl::Duration end) const;
  // True once nothing new is to be started.
  bool Over();

  Clock& clock() { return *clock_; }
  absl::Time start() const { return start_; }
  // The steady window: what began and ended in it counts.
  absl::Time window_begin() const { return start_ + warmup_; }
  absl::Time window_end() const { return absl::FromUnixNanos(window_end_.load()); }
  bool Counts(absl::Time from, absl::Time to) const {
    return from >= window_begin() && to <= window_end();
  }
  // Which piece of the load `time` lies in.
  size_t PieceAt(absl::Time time) const { return varying().PieceAt(time - start_); }
  // What varies: the rate of an open loop, the sessions of a closed one.
  const LoadProfile& varying() const { return rate_.has_value() ? *rate_ : sessions_; }
  bool open_loop() const { return rate_.has_value(); }

 private:
  // False: stopped before.
  bool SleepUntil(absl::Time until);
  bool HasRoom(int32_t worker) { return sessions_.LevelAt(clock_->Now() - start_) >= worker + 1; }

  Clock* const clock_;
  const LoadProfile sessions_;
  const std::optional<LoadProfile> rate_;
  const absl::Duration warmup_, length_, think_time_;
  const int64_t max_rounds_;
  const Arrivals arrivals_;
  const double burstiness_;
  const uint64_t seed_;
  ArrivalSchedule schedule_;
  absl::Time start_;
  std::atomic<int64_t> window_end_{0};  // nanoseconds since the epoch
  std::atomic<int64_t> rounds_{0};      // handed out
  std::atomic<bool> stopped_{false};
  std::atomic<bool> exhausted_{false};  // the schedule has no start left
};

}  // namespace aerie::loadtest
