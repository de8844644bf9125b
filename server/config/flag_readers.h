// How the text of a flag becomes a value. INVALID_ARGUMENT names flag and text, and an example.
//
// Only what no value can be is refused here; which values are in range is said by the options
// themselves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wiring.h"
#include "common/wiring_report.h"
#include "server/engine/target_quotas.h"

namespace aerie {

absl::StatusOr<int32_t> ReadInt(const std::string& flag, const std::string& text);
// A number alone, or with KiB, MiB or GiB.
absl::StatusOr<int64_t> ReadBytes(const std::string& flag, const std::string& text);
// A number with its unit, as absl::ParseDuration takes it.
absl::StatusOr<absl::Duration> ReadDuration(const std::string& flag, const std::string& text);
absl::StatusOr<bool> ReadSwitch(const std::string& flag, const std::string& text);
absl::StatusOr<double> ReadNumber(const std::string& flag, const std::string& text);
absl::StatusOr<LayerIdConvention> ReadConvention(const std::string& flag, const std::string& text);
// What it reads as that.
std::string ConventionName(LayerIdConvention convention);
absl::StatusOr<GuardMode> ReadGuardMode(const std::string& flag, const std::string& text);
// Octal permission bits, 0..0777.
absl::StatusOr<int32_t> ReadMode(const std::string& flag, const std::string& text);
absl::StatusOr<std::string> ReadText(const std::string& flag, const std::string& text);
// NAME=WEIGHT each; no name twice.
absl::StatusOr<std::map<std::string, int32_t>> ReadWeights(const std::string& flag,
                                                           const std::vector<std::string>& texts);
// NAME=SESSIONS or NAME=SESSIONS:ROWS_PER_SECOND each; no name twice.
absl::StatusOr<TargetQuotaMap> ReadTargetQuotas(const std::string& flag,
                                                const std::vector<std::string>& texts);

}  // namespace aerie
