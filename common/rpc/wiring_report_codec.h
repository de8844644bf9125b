// What the live guard found, as messages of admin.proto.
#pragma once

#include "absl/types/span.h"
#include "aerie/v1/admin.pb.h"
#include "common/wiring_report.h"

namespace aerie::rpc {

v1::WiringState EncodeWiringState(WiringState state);
v1::WiringGuardMode EncodeGuardMode(GuardMode mode);
void EncodeWiringReport(const WiringReport& report, v1::WiringReport* out);
v1::GetWiringReportResponse EncodeWiringReports(absl::Span<const WiringReport> reports,
                                                WiringState worst);

}  // namespace aerie::rpc
