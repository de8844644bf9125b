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

}  // namespace

absl::Status WritePortFile(const std::string& path, const std::vector<std::string>& grpc,
                           const std::string& metrics) {
  nlohmann::json json;
  json["grpc"] = grpc;
  json["metrics"] = metrics.empty() ? nlohmann::json() : nlohmann::json(metrics);
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
