// What a call says of itself beside its message: to a proxy, and to those who read the server's
// logs.
#pragma once

#include <grpcpp/client_context.h>

#include <string>

namespace aerie {

struct CallMetadata {
  std::string key;          // which server it must come to: client/session_key.h
  std::string traceparent;  // W3C's, of the request that it serves; empty: none

  // Before the call starts. `key` must pass CheckSessionKey; a traceparent that cannot be read is
  // left out.
  void AddTo(grpc::ClientContext* context) const;
};

}  // namespace aerie
