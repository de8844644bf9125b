// The metrics page as the flags say: where it is, whether over TLS, and who may read it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/config/options.h"
#include "server/metrics/exporter.h"
#include "server/metrics/metric_page.h"

namespace aerie {

// Null when it is off. Fails as StartExporter(), and as ReadTlsFiles() and AccessControl say of
// files that cannot be used.
absl::StatusOr<std::unique_ptr<Exporter>> StartMetricsPage(const Options& options,
                                                           std::shared_ptr<MetricPage> page);

}  // namespace aerie
