#include "client/loadtest/arrival_schedule.h"

#include <cmath>
#include <utility>

#include "common/check.h"

namespace aerie::loadtest {
namespace {

// A stream of random numbers apart from those of sequences and rows.
constexpr uint64_t kArrivalStream = ~uint64_t{0} - 2;

// In (0, 1]: its logarithm is finite.
double UniformAboveZero(Random& random) { return 1.0 - random.Uniform(); }

double DrawNormal(Random& random) {
  return std::sqrt(-2.0 * std::log(UniformAboveZero(random))) *
         std::cos(2.0 * M_PI * random.Uniform());
}

}  // namespace

double DrawGamma(double shape, Random& random) {
  // Marsaglia and Tsang 2000, for shapes from 1; below, a power of a uniform number corrects one
  // of shape + 1.
  const double raised = shape < 1.0 ? shape + 1.0 : shape;
  const double d = raised - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = DrawNormal(random);
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0.0) continue;
    if (std::log(UniformAboveZero(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      const double boost = shape < 1.0 ? std::pow(UniformAboveZero(random), 1.0 / shape) : 1.0;
      return d * v * boost / shape;
    }
  }
}

ArrivalSchedule::ArrivalSchedule(LoadProfile profile, Arrivals arrivals, double burstiness,
                                 uint64_t seed)
    : profile_(std::move(profile)),
      arrivals_(arrivals),
      burstiness_(burstiness),
      random_(seed, kArrivalStream) {
  AERIE_CHECK(burstiness > 0) << "burstiness " << burstiness;
}

double ArrivalSchedule::Gap() {
  switch (arrivals_) {
    case Arrivals::kConstant:
      // The first round starts with the run, so that a rate of 100 asks for 100 in each second.
      return first_ ? 0.0 : 1.0;
    case Arrivals::kPoisson:
      return -std::log(UniformAboveZero(random_));
    case Arrivals::kGamma:
      return DrawGamma(burstiness_, random_);
  }
  return 1.0;
}

absl::Duration ArrivalSchedule::Next() {
  absl::MutexLock lock(&mutex_);
  area_ += Gap();
  first_ = false;
  return profile_.TimeOfArea(area_);
}

}  // namespace aerie::loadtest
