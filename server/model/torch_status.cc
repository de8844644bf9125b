#include "server/model/torch_status.h"

#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/kernels/cuda/device.h"

namespace aerie {

absl::Status StatusFromException(const std::exception& error, std::string_view doing) {
  if (const auto* const device = dynamic_cast<const DeviceError*>(&error)) {
    // Its message is complete.
    switch (device->kind()) {
      case DeviceError::Kind::kAbsent:
        return absl::FailedPreconditionError(device->what());
      case DeviceError::Kind::kMemory:
        return absl::ResourceExhaustedError(device->what());
      case DeviceError::Kind::kFailed:
        break;
    }
    return absl::InternalError(device->what());
  }
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
