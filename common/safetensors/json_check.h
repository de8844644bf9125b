// The checks that a JSON parser leaves out and that a file from outside needs: depth, and keys
// given twice (of which parsers keep one, in silence).
#pragma once

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"

namespace aerie {

// INVALID_ARGUMENT unless `text` is one JSON object, well-formed UTF-8, nested at most `max_depth`
// deep (1: only the object itself) and no object in it has a key twice. After OK a parser will not
// fail on it.
absl::Status CheckJsonObject(absl::string_view text, int max_depth);

// `name` in quotes, with control characters escaped and cut when long: fit for a message, whatever
// was in the file.
std::string Quoted(absl::string_view name);

}  // namespace aerie
