#include "server/config/probe_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

absl::Status BesideProbe(const std::string& flag, const std::string& address) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " comes with --probe ", address,
                   "; expected only --tls-ca, --tls-cert, --tls-key, --tls-server-name and "
                   "--token-file beside it, as it starts no server; remove --",
                   flag));
}

}  // namespace

ProbeFlags::ProbeFlags(CLI::App* app) {
  const char* const group = "Probe";
  probe_ = app->add_option("--probe", options_.address,
                           "Ask the server at ADDRESS (host:port or unix:PATH) whether it serves, "
                           "say so and leave: exit code 0 it does, 1 it does not (loading, "
                           "draining), 2 it cannot be asked. Beside it, --tls-cert, --tls-key and "
                           "--token-file are the asking client's.");
  probe_->type_name("ADDRESS")->group(group);
  app->add_option("--tls-ca", options_.files.tls_ca,
                  "PEM certificates that sign the probed server's: ask over TLS. Not on Unix "
                  "sockets. Only with --probe.")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--tls-server-name", options_.files.tls_server_name,
                  "Name to find in the probed server's certificate; default: that of the address. "
                  "Only with --probe.")
      ->type_name("NAME")
      ->group(group);
}

absl::StatusOr<std::optional<ProbeOptions>> ProbeFlags::Read(
    const std::map<std::string, std::vector<std::string>>& given) const {
  ProbeOptions out = options_;
  if (probe_->count() == 0) {
    for (const auto& [flag, value] : {std::pair{"--tls-ca", out.files.tls_ca},
                                      std::pair{"--tls-server-name", out.files.tls_server_name}}) {
      if (value.empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " is ", value,
                       " but --probe is not given; expected it only where a server is asked, since "
                       "a server's own files are --tls-cert, --tls-key and --tls-client-ca; give "
                       "these, or --probe"));
    }
    return std::nullopt;
  }
  const size_t colon = out.address.rfind(':');
  if (colon == std::string::npos || colon + 1 == out.address.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--probe is \"", out.address,
                     "\"; expected host:port or unix:PATH; give the address that the server "
                     "listens on, such as 127.0.0.1:50051"));
  }
  const std::map<std::string, std::string*> files = {{"tls-cert", &out.files.tls_cert},
                                                     {"tls-key", &out.files.tls_key},
                                                     {"token-file", &out.files.token_file}};
  for (const auto& [flag, texts] : given) {
    if (texts.empty()) continue;
    const auto file = files.find(flag);
    if (file == files.end()) return BesideProbe(flag, out.address);
    *file->second = texts.back();
  }
  return out;
}

}  // namespace aerie
