// What aerie-admin prints for people. Each text ends with a line break.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "aerie/v1/admin.pb.h"
#include "aerie/v1/draft.pb.h"

namespace aerie::admin {

std::string ToText(const v1::GetServerInfoResponse& info);
std::string ToText(const v1::GetWiringReportResponse& reports);

// "debug" and so on.
std::string NameOf(v1::LogLevel level);
// INVALID_ARGUMENT for another word.
absl::StatusOr<v1::LogLevel> LogLevelOf(const std::string& name);

}  // namespace aerie::admin
