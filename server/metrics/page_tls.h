// TLS of the metrics page: what the HTTP library's context shows at each handshake.
//
// The library reads certificates once. So nothing is put into its context but a hook that asks for
// them anew for each connection, and a renewed certificate needs no restart.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <string>

#include "server/metrics/exporter.h"

namespace aerie {

// `source` must outlive the context. A handshake for which it gives nothing that can be used fails.
void ServeTls(SSL_CTX& context, const std::function<PageTls()>* source);

// The name in the certificate that the other side has shown: the first DNS name, else the common
// name. Empty: it has shown none.
std::string PeerName(const SSL* connection);

}  // namespace aerie
