// What a refusal must say: what was seen, what was expected, what to do.
#pragma once

#include <string>

#include "gmock/gmock.h"

namespace aerie {

// Holds `seen` in front of "; expected ", and something to do behind it.
MATCHER_P(SaysWhatWhyAndHow, seen, "holds \"" + std::string(seen) + "\" and has three parts") {
  const std::string message(arg);
  const size_t at = message.find(seen);
  if (at == std::string::npos) return false;
  const size_t expected = message.find("; expected ", at);
  return expected != std::string::npos && message.find("; ", expected + 2) != std::string::npos;
}

}  // namespace aerie
