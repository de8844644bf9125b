// One effective setting and where it came from, as the log, aerie-inspect and GetServerInfo show
// it.
#pragma once

#include <string>

namespace aerie {

struct Setting {
  std::string name;
  std::string value;
  std::string
      source;  // "tensor fc.weight", "config.json: rope_theta", "default of SpecForge", "flag --k"

  friend bool operator==(const Setting&, const Setting&) = default;
};

}  // namespace aerie
