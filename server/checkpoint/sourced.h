// A value and where it came from, so that no effective setting is ever without a source.
#pragma once

#include <string>
#include <utility>

namespace aerie {

template <typename T>
struct Sourced {
  T value{};
  std::string source;  // "tensor fc.weight", "config.json: rope_theta", "default of ..."

  friend bool operator==(const Sourced&, const Sourced&) = default;
};

}  // namespace aerie
