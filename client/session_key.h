// Which of several draft servers a session belongs to, told to a proxy in front of them.
//
// A proxy sees no message, only metadata: what carries equal values of `aerie-session` must come to
// one server, for only that server holds the session's rows. The value is the client's own and not
// the session's id, which the server gives out when it has been chosen already.
#pragma once

#include <grpcpp/client_context.h>

#include <string>

#include "absl/status/status.h"

namespace aerie {

// A key that nobody else has.
std::string NewSessionKey();

// INVALID_ARGUMENT: not 1 to 64 letters, digits, dots, dashes or underscores.
absl::Status CheckSessionKey(const std::string& key);

// Before the call starts. `key` must pass CheckSessionKey.
void AddSessionKey(const std::string& key, grpc::ClientContext* context);

}  // namespace aerie
