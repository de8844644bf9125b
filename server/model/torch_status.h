// The border between LibTorch, which throws, and the rest, which does not. No exception leaves this
// folder.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace aerie {

// RESOURCE_EXHAUSTED when memory ran out, FAILED_PRECONDITION when a device is missing, else
// INTERNAL. `doing`: "drafting".
absl::Status StatusFromException(const std::exception& error, std::string_view doing);

// The result of `body`, which returns a Status or a StatusOr; what it throws becomes a status.
template <typename Body>
std::invoke_result_t<Body> CatchTorch(std::string_view doing, Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return StatusFromException(error, doing);
  }
}

}  // namespace aerie
