// A fingerprint as JSON, to stand inside another document.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/recording/fingerprint.h"

namespace aerie {

// One JSON object. Numbers keep all their digits: reading gives the same fingerprint back.
std::string FingerprintToJson(const Fingerprint& fingerprint);

// INVALID_ARGUMENT for text that is no fingerprint: sizes that disagree, channels out of order or
// range, numbers that are not finite, other levels than this program's.
absl::StatusOr<Fingerprint> FingerprintFromJson(absl::string_view text);

}  // namespace aerie
