#include "client/loadtest/round_gate.h"

#include <algorithm>
#include <limits>

namespace aerie::loadtest {
namespace {

// How long a sleeping worker may take to notice that the run was stopped.
constexpr absl::Duration kNap = absl::Milliseconds(100);

}  // namespace

RoundGate::RoundGate(const LoadOptions& options, Clock* clock)
    : clock_(clock),
      sessions_(options.sessions),
      rate_(options.rate),
      warmup_(options.warmup),
      length_(options.EndOfLoad()),
      think_time_(options.think_time),
      max_rounds_(options.total_rounds.value_or(std::numeric_limits<int64_t>::max())),
      arrivals_(options.arrivals),
      burstiness_(options.burstiness),
      seed_(options.seed),
      schedule_(options.rate.value_or(LoadProfile::Constant(1)), options.arrivals,
                options.burstiness, options.seed) {}

void RoundGate::Begin() {
  start_ = clock_->Now();
  window_end_ = length_ == absl::InfiniteDuration() ? std::numeric_limits<int64_t>::max()
                                                    : absl::ToUnixNanos(start_ + length_);
}

bool RoundGate::Over() {
  return stopped_.load(std::memory_order_relaxed) || exhausted_.load(std::memory_order_relaxed) ||
         clock_->Now() - start_ >= length_ ||
         rounds_.load(std::memory_order_relaxed) >= max_rounds_;
}

bool RoundGate::SleepUntil(absl::Time until) {
  for (;;) {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    const absl::Time now = clock_->Now();
    if (now >= until) return true;
    clock_->SleepUntil(std::min(until, now + kNap));
  }
}

bool RoundGate::WaitToOpen(int32_t worker) {
  if (Over()) return false;
  const absl::Duration room =
      sessions_.TimeOfLevel(worker + 1, std::max(absl::ZeroDuration(), clock_->Now() - start_));
  // Of a load that has no room any more, the worker has nothing left to do.
  if (room >= length_ && length_ != absl::InfiniteDuration()) return false;
  return SleepUntil(start_ + room) && !Over();
}

std::optional<RoundStart> RoundGate::WaitToStart(int32_t worker) {
  if (Over() || !HasRoom(worker)) return std::nullopt;
  RoundStart round;
  round.ready = clock_->Now();
  if (rate_.has_value()) {
    const absl::Duration next = schedule_.Next();
    if (next >= length_) {
      exhausted_.store(true, std::memory_order_relaxed);
      return std::nullopt;
    }
    round.intended = start_ + next;
  } else {
    round.intended = round.ready + think_time_;
  }
  if (rounds_.fetch_add(1, std::memory_order_relaxed) >= max_rounds_) return std::nullopt;
  if (!SleepUntil(round.intended)) return std::nullopt;
  if (!rate_.has_value() && clock_->Now() - start_ >= length_) return std::nullopt;
  return round;
}

int64_t RoundGate::StartsWithin(absl::Duration begin, absl::Duration end) const {
  // The same draws again: those that nobody came to take are in it.
  ArrivalSchedule schedule(varying(), arrivals_, burstiness_, seed_);
  int64_t starts = 0;
  for (absl::Duration next = schedule.Next(); next < end; next = schedule.Next()) {
    if (next >= begin) ++starts;
  }
  return starts;
}

void RoundGate::BeginDrain() {
  // The first one counts; a run by time has its end already.
  int64_t open = std::numeric_limits<int64_t>::max();
  window_end_.compare_exchange_strong(open, absl::ToUnixNanos(clock_->Now()));
}

}  // namespace aerie::loadtest
