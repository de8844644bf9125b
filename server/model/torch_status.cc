#include "server/model/torch_status.h"

#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace aerie {

absl::Status StatusFromException(const std::exception& error, std::string_view doing) {
  // Further lines are a stack trace, which helps nobody who reads a reply.
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));
  // LibTorch's allocator on the CPU throws its general error, so only the text tells.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      absl::StrContains(what, "can't allocate memory") ||
                      absl::StrContains(what, "not enough memory");
  if (memory) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "memory ran out while ", std::string(doing), " (", what,
        "); expected room for weights, rows and KV; hold fewer or shorter sessions, or give "
        "the server more memory"));
  }
  return absl::InternalError(
      absl::StrCat("LibTorch failed while ", std::string(doing), ": ", what,
                   "; expected a result; report this as a fault of the server"));
}

}  // namespace aerie
