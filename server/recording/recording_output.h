// Files of a recording that is being made. Only their owner may read them: what people asked can be
// told from tokens.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/recording/recording_description.h"

namespace aerie {

// recording.json.
std::string RecordingDescriptionAsJson(const RecordingDescription& description);

// Behind a file of rows that are not yet a sample.
inline constexpr char kSpoolSuffix[] = ".rows";

// Makes `folder`, or takes one that is empty. ALREADY_EXISTS: it holds a recording, or the
// beginning of one. INVALID_ARGUMENT: it holds something else. UNAVAILABLE: it cannot be made.
absl::Status PrepareFolder(const std::string& folder);

// In one step: readers see the old file or the new one, never a part. UNAVAILABLE when it cannot be
// written.
absl::Status ReplaceFile(const std::string& path, absl::string_view text);

// UNAVAILABLE, with errno in words.
absl::Status CannotWriteError(const std::string& path);

// All of it at `offset`; false with errno when that fails.
bool WriteAt(int file, const char* bytes, size_t count, int64_t offset);

}  // namespace aerie
