// The live guard as it is set up when the server starts: its profile, and what is said of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/wiring.h"
#include "common/wiring_report.h"
#include "server/guard/guard_profile.h"
#include "server/metrics/prometheus_observer.h"

namespace aerie {

// From `text`, the profile in wiring.json; empty: there is none. nullopt: none is needed, or there
// is none to have. INVALID_ARGUMENT: the text is no profile of this wiring, or the mode cannot do
// without one.
absl::StatusOr<std::optional<GuardProfile>> LoadGuardProfile(GuardMode mode,
                                                             const std::string& text,
                                                             const Wiring& wiring,
                                                             int32_t target_hidden_size);

// What the guard will do and how much it will see, in one line.
std::string DescribeGuard(GuardMode mode, const std::optional<GuardProfile>& profile);

WiringFacts WiringFactsOf(GuardMode mode, const Wiring& wiring,
                          const std::optional<GuardProfile>& profile);

}  // namespace aerie
