// Reads a server's metrics page, as it asks to be asked: over TLS, with a token, with a
// certificate.
//
// What one would get wrong: the token is sent behind the handshake, so only to a server whose
// certificate was found right, and over plain HTTP only where LoadOptions::Validate lets it go.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/loadtest/metrics_page.h"
#include "client/loadtest/options.h"
#include "client/loadtest/page_address.h"
#include "common/rpc/token_source.h"

namespace aerie::loadtest {

// One thread at a time.
class PageReader {
 public:
  // Of the page at --metrics, which must be given, with the files of valid `options`.
  // INVALID_ARGUMENT: the token's file cannot be used.
  static absl::StatusOr<std::unique_ptr<PageReader>> Create(const LoadOptions& options);

  // The page as it is now, by a connection of its own; certificates and token are read anew.
  // UNAVAILABLE: nobody answers, not with a page, or not over TLS as is expected. UNAUTHENTICATED,
  // PERMISSION_DENIED: the page wants another token. INVALID_ARGUMENT: the TLS files cannot be
  // used.
  absl::StatusOr<MetricsPage> Read();

 private:
  PageReader(const LoadOptions& options, PageAddress address, std::string token);

  const PageAddress address_;
  const rpc::ChannelFiles files_;
  const std::string token_flag_, token_file_;  // an empty path: no token
  rpc::TokenSource token_;
};

}  // namespace aerie::loadtest
