// Student's t distribution, for comparisons of a few sequences.
#pragma once

namespace aerie {

// The probability that |T| is at least |t|. `degrees` >= 1. 0 for an infinite t, 1 for NaN: no
// evidence.
double TwoSidedP(double t, double degrees);

// The t that |T| exceeds with probability `p`, 0 < p < 1.
double TwoSidedQuantile(double p, double degrees);

}  // namespace aerie
