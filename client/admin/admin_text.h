// What aerie-admin prints for people. Each text ends with a line break.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "aerie/v1/admin.pb.h"
#include "aerie/v1/draft.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"

namespace aerie::admin {

std::string ToText(const v1::GetServerInfoResponse& info);
std::string ToText(const v1::GetWiringReportResponse& reports);

// One object, as the wire has it.
std::string ToJson(const google::protobuf::Message& message);

// Without a line break: parts of other texts. Control characters of what others sent must not reach
// a terminal.
std::string Printable(std::string text);
std::string TimeText(const google::protobuf::Timestamp& time);

// "debug" and so on.
std::string NameOf(v1::LogLevel level);
// INVALID_ARGUMENT for another word.
absl::StatusOr<v1::LogLevel> LogLevelOf(const std::string& name);

}  // namespace aerie::admin
