// The flags of aerie-server: name, help, default, and how a text becomes a value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace aerie {

struct Flag {
  std::string name;   // "max-k"
  std::string group;  // heading in --help
  std::string value;  // what the value is, for --help: "N", "DIR", "TIME"
  std::string help;   // effect, unit and range
  std::string default_text;
  bool repeatable = false;
  bool may_stand_alone = false;  // without a value, which means "on"
  // Reads the texts (one, or several of a repeatable flag) into the options; INVALID_ARGUMENT names
  // flag and value.
  std::function<absl::Status(const std::vector<std::string>& texts, Options* options)> set;
};

// In the order of --help.
std::vector<Flag> FlagTable();

}  // namespace aerie
