#include "client/loadtest/page_address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace aerie::loadtest {
namespace {

constexpr char kPath[] = "/metrics";

}  // namespace

absl::StatusOr<PageAddress> PageAddress::Parse(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("--metrics is '", text.substr(0, 200),
                   "'; expected where the server's page is; write HOST:PORT of its "
                   "--metrics-listen, or https://HOST:PORT if it has --metrics-tls"));
  PageAddress out;
  absl::string_view rest = text;
  out.tls = absl::ConsumePrefix(&rest, "https://");
  if (!out.tls) absl::ConsumePrefix(&rest, "http://");
  if (!absl::ConsumeSuffix(&rest, kPath)) absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return bad;
  const absl::string_view port = rest.substr(colon + 1);
  absl::string_view host = rest.substr(0, colon);
  if (port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &out.port) || out.port < 1 || out.port > 65535) {
    return bad;
  }
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  // Neither a user's name nor another path: nobody would know that they were left out.
  if (host.empty() || host.find_first_of(bracketed ? "@/?#[] " : "@/?#[]: ") != host.npos) {
    return bad;
  }
  out.host = std::string(host.data(), host.size());
  return out;
}

std::string PageAddress::HostAndPort() const {
  const bool brackets = host.find(':') != std::string::npos;
  return absl::StrCat(brackets ? "[" : "", host, brackets ? "]:" : ":", port);
}

std::string PageAddress::Url() const {
  return absl::StrCat(tls ? "https://" : "http://", HostAndPort(), kPath);
}

}  // namespace aerie::loadtest
