// The real service and engine over a drafter that computes nothing: what is left of a call is its
// way to the model and back.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace aerie {

struct WireServerOptions {
  int32_t hidden_size = 576;  // of the target and of the drafter; rows have three captures
  std::string address_file;   // where "TCP address,Unix address" is written when it serves
};

// Serves until standard input ends.
absl::Status ServeWire(const WireServerOptions& options);

}  // namespace aerie
