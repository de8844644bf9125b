// Who may talk to the server, and how: TLS, tokens, modes of Unix sockets.
//
// A value that is empty is a defence that is off. What may be off where is settled by
// CheckExposure: an address that other hosts can reach wants TLS or tokens, or somebody who says
// that he knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace aerie {

struct SecurityOptions {
  std::string tls_cert;       // PEM, the server's chain, its own certificate first
  std::string tls_key;        // PEM, the key of that certificate
  std::string tls_client_ca;  // PEM; set: every client on TCP must show a certificate of these
  std::string token_file;     // server/transport/token_book.h; set: every call needs a token
  bool insecure = false;      // public addresses may be listened on without TLS and tokens
  int32_t unix_socket_mode = 0660;  // permission bits of Unix sockets

  bool tls() const { return !tls_cert.empty(); }
  bool mutual_tls() const { return !tls_client_ca.empty(); }
  bool tokens() const { return !token_file.empty(); }

  // INVALID_ARGUMENT for flags that contradict each other. Opens no file.
  absl::Status Validate() const;
};

// INVALID_ARGUMENT for a public address among `listen` without TLS and tokens, unless insecure.
// `flag` is where they come from.
absl::Status CheckExposure(const SecurityOptions& security, const char* flag,
                           const std::vector<std::string>& listen);

// What is allowed but deserves a word to who runs the server; empty: nothing does.
std::vector<std::string> ExposureWarnings(const SecurityOptions& security, const char* flag,
                                          const std::vector<std::string>& listen);

}  // namespace aerie
