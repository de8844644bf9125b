#include "common/rpc/channel_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie::rpc {
namespace {

absl::Status Bad(const char* flag, const std::string& value, const char* seen, const char* remedy) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, " ", seen, "; ", remedy));
}

absl::StatusOr<std::string> Read(const char* flag, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open() || text.empty()) {
    return Bad(flag, path, "cannot be read or is empty",
               "expected a file; correct the path or its permissions");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const char* flag) {
  AERIE_ASSIGN_OR_RETURN(const std::string text, Read(flag, path));
  std::string token(absl::StripAsciiWhitespace(text));
  const bool printable = std::all_of(token.begin(), token.end(), [](char letter) {
    return absl::ascii_isgraph(static_cast<unsigned char>(letter));
  });
  if (!path.empty() && (token.empty() || !printable)) {
    return Bad(flag, path, "holds no token",
               "expected one line of printable ASCII without blanks; write the token alone into "
               "it, not the server's file");
  }
  return token;
}

absl::StatusOr<ChannelSecrets> ReadChannelFiles(const ChannelFiles& files) {
  if (files.tls_cert.empty() != files.tls_key.empty()) {
    const bool cert = !files.tls_cert.empty();
    return Bad(cert ? "--tls-cert" : "--tls-key", cert ? files.tls_cert : files.tls_key,
               "is given alone", "expected --tls-cert and --tls-key together; give both");
  }
  for (const auto& [flag, value] : {std::pair{"--tls-cert", files.tls_cert},
                                    std::pair{"--tls-server-name", files.tls_server_name}}) {
    if (value.empty() || !files.tls_ca.empty()) continue;
    return Bad(flag, value, "is given without --tls-ca",
               "expected the certificates that sign the server's; give --tls-ca FILE");
  }
  ChannelSecrets secrets;
  AERIE_ASSIGN_OR_RETURN(secrets.ca, Read("--tls-ca", files.tls_ca));
  AERIE_ASSIGN_OR_RETURN(secrets.certificate, Read("--tls-cert", files.tls_cert));
  AERIE_ASSIGN_OR_RETURN(secrets.key, Read("--tls-key", files.tls_key));
  AERIE_ASSIGN_OR_RETURN(secrets.token, ReadTokenFile(files.token_file));
  secrets.token_file = files.token_file;
  secrets.server_name = files.tls_server_name;
  return secrets;
}

}  // namespace aerie::rpc
