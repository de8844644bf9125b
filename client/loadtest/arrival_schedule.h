// When the rounds of an open loop are meant to start, whatever the server does.
//
// Gaps are drawn with a mean of one round and then mapped through the profile's integral, so that
// steps and ramps keep the kind of process, and a constant process on a ramp is exact.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/loadtest/load_profile.h"
#include "client/loadtest/random.h"

namespace aerie::loadtest {

enum class Arrivals { kConstant, kPoisson, kGamma };

// Any thread.
class ArrivalSchedule {
 public:
  // `burstiness` is the shape of the gamma distribution of gaps: 1 is Poisson, below it rounds come
  // in bursts, above it they come more evenly; the gaps' squared coefficient of variation is
  // 1 / burstiness. > 0, and only of kGamma.
  ArrivalSchedule(LoadProfile profile, Arrivals arrivals, double burstiness, uint64_t seed);

  // The next start, from the start of the run; infinite once the profile has ended.
  absl::Duration Next();

 private:
  double Gap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LoadProfile profile_;
  const Arrivals arrivals_;
  const double burstiness_;
  absl::Mutex mutex_;
  Random random_ ABSL_GUARDED_BY(mutex_);
  double area_ ABSL_GUARDED_BY(mutex_) = 0;  // rounds asked for before the next one
  bool first_ ABSL_GUARDED_BY(mutex_) = true;
};

// With shape `shape` and mean 1.
double DrawGamma(double shape, Random& random);

}  // namespace aerie::loadtest
