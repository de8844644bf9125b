#include "server/config/port_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace aerie {
namespace {

absl::Status Failed(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat("--port-file ", path, " cannot be ", what, ": ",
                                             std::strerror(errno),
                                             "; expected a writable folder; change --port-file"));
}

nlohmann::json OrNull(const std::string& address) {
  return address.empty() ? nlohmann::json() : nlohmann::json(address);
}

}  // namespace

absl::Status WritePortFile(const std::string& path, const BoundAddresses& addresses) {
  nlohmann::json json;
  json["grpc"] = addresses.grpc;
  json["metrics"] = OrNull(addresses.metrics);
  json["admin"] = OrNull(addresses.admin);
  const std::string temporary = absl::StrCat(path, ".", getpid());
  {
    std::ofstream file(temporary);
    file << json.dump() << '\n';
    file.flush();
    if (!file) return Failed(temporary, "written");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return Failed(path, "written");
  return absl::OkStatus();
}

absl::Status RemovePortFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return Failed(path, "removed");
}

}  // namespace aerie
