// Where a server's metrics page is, as --metrics says it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace aerie::loadtest {

struct PageAddress {
  bool tls = false;
  std::string host;  // an IPv6 address without its brackets
  int32_t port = 0;

  // HOST:PORT is plain HTTP; http:// or https:// may stand before it, / or /metrics behind it.
  // INVALID_ARGUMENT that names flag, value and remedy: anything else.
  static absl::StatusOr<PageAddress> Parse(absl::string_view text);

  std::string HostAndPort() const;
  std::string Url() const;
};

}  // namespace aerie::loadtest
