// One GET of a metrics page, over HTTP or HTTPS.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/loadtest/page_address.h"
#include "common/rpc/channel_files.h"

namespace aerie::loadtest {

struct PageAnswer {
  int status = 0;  // of HTTP
  std::string body;
};

// Over TLS the server's certificate must be signed by files.tls_ca, or by one of the system's
// authorities where that is empty, and name files.tls_server_name or the address's host. Nothing is
// sent before that was found so. An empty token: none is carried; files.token_file is not read.
// UNAVAILABLE: no answer. INVALID_ARGUMENT: the client's own certificate or key cannot be used.
absl::StatusOr<PageAnswer> GetPage(const PageAddress& address, const rpc::ChannelFiles& files,
                                   const std::string& token);

}  // namespace aerie::loadtest
