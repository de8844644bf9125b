// The aerie_target_ metrics: what came of the quotas of targets.
//
// Read when they are scraped, since the quotas count for themselves. There is a series for each
// quota that was set and none for others, so names that workers make up add nothing to the page.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "prometheus/collectable.h"
#include "server/engine/round_observer.h"

namespace aerie {

// `usage` is called by any thread.
std::shared_ptr<prometheus::Collectable> TargetMetrics(
    std::function<std::vector<TargetUsage>()> usage);

}  // namespace aerie
