// Channels to a server, with TLS and a token as files say: the one place where programs get them.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"

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
};

// INVALID_ARGUMENT for flags that contradict each other and files that cannot be used, by flag and
// path. No message shows content.
absl::StatusOr<ChannelSecrets> ReadChannelFiles(const ChannelFiles& files);

// Does not connect yet. A Unix socket is dialled in the clear whatever the secrets say: servers
// have no TLS on it.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ChannelSecrets& secrets,
                                           grpc::ChannelArguments arguments = {});

}  // namespace aerie::rpc
