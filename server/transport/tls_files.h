// The PEM files of TLS, read and checked.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/transport/security_options.h"

namespace aerie {

struct TlsFiles {
  std::string certificates, key, client_ca;  // PEM; client_ca may be empty
};

// Fails as ReadPublicFile and ReadSecretFile do; INVALID_ARGUMENT, naming the file, for one that
// holds no such thing, a key that is of another certificate, and a certificate that has expired.
absl::StatusOr<TlsFiles> ReadTlsFiles(const SecurityOptions& options);

}  // namespace aerie
