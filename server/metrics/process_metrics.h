// The process_ metrics, read from /proc when they are scraped.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"

namespace aerie {

// Any thread. A metric whose source cannot be read is left out: a gap on the dashboard is true, a
// zero is not.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

}  // namespace aerie
