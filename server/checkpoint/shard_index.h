// The index of a model whose tensors lie in several files.
//
// Only the text is looked at here; whether the files are there and hold what the index says is
// checked by who opens them.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace aerie {

// Tensor name -> name of a file beside the index. INVALID_ARGUMENT, with the `path` of the index,
// when it is no such list or names anything but plain files.
absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text,
                                                                   const std::string& path);

// INVALID_ARGUMENT in three parts.
absl::Status BadIndex(const std::string& path, absl::string_view seen, absl::string_view expected);

}  // namespace aerie
