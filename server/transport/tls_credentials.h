// TLS of a listener, with certificates that may be replaced while it runs.
//
// gRPC's own watcher of files gives up the old certificate before it knows whether the new one is
// any good. So the files are looked at here, at each handshake: what has changed is checked (does
// it parse, does the key fit) and only then handed on. Connections that stand are not touched.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/security/server_credentials.h"
#include "server/transport/security_options.h"

namespace aerie {

// `options.tls()` must hold. Fails as ReadTlsFiles does: a server does not start with files that it
// cannot use. Asks for client certificates when there is a client CA, and lets nobody in without.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const SecurityOptions& options);

}  // namespace aerie
