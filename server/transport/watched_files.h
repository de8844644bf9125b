// Files of secrets and certificates: read whole, and noticed when they change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace aerie {

// The whole file. `flag` is where its path comes from. NOT_FOUND when it cannot be read,
// FAILED_PRECONDITION when it is secret and others may read it, INVALID_ARGUMENT when it is larger
// than such files are. No message shows content.
absl::StatusOr<std::string> ReadPublicFile(const char* flag, const std::string& path);
absl::StatusOr<std::string> ReadSecretFile(const char* flag, const std::string& path);

// What changes when one of the files is written or replaced; a link is followed, so the ones that
// orchestrators turn to new folders are seen too.
std::string StampOf(const std::vector<std::string>& paths);

}  // namespace aerie
