// What a client needs for TLS and a token: files, as settings name them, and what stands in them.
// Knows no gRPC, so that whoever only hands it on need not either.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace aerie::rpc {

// Paths; empty: not wanted. The names are those of the flags.
struct ChannelFiles {
  std::string tls_ca;           // PEM, who may have signed the server's certificate; set: TLS
  std::string tls_cert;         // PEM, the client's own certificate, for mutual TLS
  std::string tls_key;          // PEM, its key
  std::string tls_server_name;  // the name to find in the server's certificate; empty: the address
  std::string token_file;       // a line with the token that calls carry
};

// What stands in them.
struct ChannelSecrets {
  std::string ca, certificate, key;
  std::string server_name;
  std::string token;
  // Where the token came from. It is read anew for each call, so that one that is replaced needs no
  // new channel; while it holds none, the last good one serves. Empty: the token stays.
  std::string token_file;
};

// INVALID_ARGUMENT for flags that contradict each other and files that cannot be used, by flag and
// path. No message shows content.
absl::StatusOr<ChannelSecrets> ReadChannelFiles(const ChannelFiles& files);

// The token in a client's file; empty for no path. Fails as above; `flag` is where the path is
// from.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path,
                                          const char* flag = "--token-file");

}  // namespace aerie::rpc
