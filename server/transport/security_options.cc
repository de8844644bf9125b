#include "server/transport/security_options.h"

#include "absl/strings/str_cat.h"
#include "common/address.h"

namespace aerie {
namespace {

absl::Status Alone(const char* flag, const std::string& value, const char* needed) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value, " but ", needed,
                                                 " is not given; expected both; give ", needed,
                                                 " FILE, or leave ", flag, " out"));
}

}  // namespace

absl::Status SecurityOptions::Validate() const {
  if (!tls_cert.empty() && tls_key.empty()) return Alone("--tls-cert", tls_cert, "--tls-key");
  if (!tls_key.empty() && tls_cert.empty()) return Alone("--tls-key", tls_key, "--tls-cert");
  if (!tls_client_ca.empty() && tls_cert.empty()) {
    return Alone("--tls-client-ca", tls_client_ca, "--tls-cert");
  }
  return absl::OkStatus();
}

absl::Status CheckExposure(const SecurityOptions& security, const char* flag,
                           const std::vector<std::string>& listen) {
  if (security.insecure || security.tls() || security.tokens()) return absl::OkStatus();
  for (const std::string& address : listen) {
    if (!IsPublicAddress(address)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", address,
                     " can be reached from other hosts, and neither TLS nor tokens are set; "
                     "expected a listener that asks who calls; give --tls-cert and --tls-key "
                     "(with --tls-client-ca for mutual TLS), or --token-file, or say --insecure "
                     "where the network itself keeps others out"));
  }
  return absl::OkStatus();
}

std::vector<std::string> ExposureWarnings(const SecurityOptions& security, const char* flag,
                                          const std::vector<std::string>& listen) {
  std::vector<std::string> out;
  for (const std::string& address : listen) {
    if (!IsPublicAddress(address)) continue;
    if (!security.tls() && security.tokens()) {
      out.push_back(absl::StrCat(flag, " ", address,
                                 " takes tokens in the clear: whoever can read the network's "
                                 "traffic can use them; expected TLS beside tokens; give "
                                 "--tls-cert and --tls-key"));
    } else if (!security.tokens() && !security.mutual_tls()) {
      out.push_back(absl::StrCat(flag, " ", address, " serves whoever can reach it",
                                 security.tls() ? ", encrypted" : ", in the clear",
                                 "; expected clients that say who they are; give --token-file or "
                                 "--tls-client-ca, or keep others out of the network"));
    }
  }
  return out;
}

}  // namespace aerie
