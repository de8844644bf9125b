#include "client/connection.h"

#include <grpcpp/support/channel_arguments.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/error_detail.h"
#include "common/rpc/channel.h"

namespace aerie {
namespace {

// A connection can be lost again right after it came back, but one that takes every connection and
// loses every call (a proxy whose backend is gone) must not be asked for as long as the deadline
// lasts.
constexpr int kMaxAttempts = 5;

// Lost, not refused: a server that refuses says why.
bool IsLostConnection(const absl::Status& status) {
  return absl::IsUnavailable(status) && DetailOf(status).reason.empty();
}

// A handshake that fails looks like a server that is not there: gRPC tries again and never says so
// to a call. So the message names what of TLS could be at fault.
std::string RemedyFor(const std::string& address, const rpc::ChannelSecrets& secrets) {
  if (absl::StartsWith(address, "unix:")) {
    return "expected one to listen there; start it or mend the path";
  }
  if (secrets.ca.empty()) {
    return "expected one to listen there, without TLS; start it, mend the address, or give the "
           "certificates that sign its own (tls_ca) if it speaks TLS";
  }
  return absl::StrCat(
      "expected one to listen there with TLS, and a certificate that those of tls_ca sign and that "
      "names ",
      secrets.server_name.empty() ? "this address" : absl::StrCat("\"", secrets.server_name, "\""),
      "; start it, mend the address, or correct tls_ca, tls_server_name, or, if it asks for a ",
      "certificate, tls_cert");
}

grpc::ChannelArguments Arguments(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  const int bytes = static_cast<int>(options.max_message_bytes);
  arguments.SetMaxReceiveMessageSize(bytes);
  arguments.SetMaxSendMessageSize(bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(options.keepalive)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A draft server that restarts is back within moments; gRPC's own first wait is a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  // Clients share nothing: the loss of one connection is the loss of one client.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

Connection::Connection(std::string address, const ClientOptions& options)
    : address_(std::move(address)),
      patience_(options.patience),
      remedy_(RemedyFor(address_, options.secrets)),
      channel_(rpc::OpenChannel(address_, options.secrets, Arguments(options))),
      stub_(v1::DraftService::NewStub(channel_)) {}

absl::Status Connection::Run(absl::Time deadline, absl::FunctionRef<absl::Status()> attempt,
                             int* attempts) {
  if (down_.load(std::memory_order_relaxed) &&
      channel_->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
    return absl::UnavailableError(
        absl::StrCat("the draft server at ", address_,
                     " has been lost and is not back yet; decode without drafts, the connection "
                     "is being tried in the background"));
  }
  for (int tried = 1;; ++tried) {
    if (attempts != nullptr) ++*attempts;
    absl::Status status = attempt();
    if (!IsLostConnection(status)) {
      if (!absl::IsDeadlineExceeded(status)) down_.store(false, std::memory_order_relaxed);
      return status;
    }
    const absl::Time until = std::min(deadline, absl::Now() + patience_);
    if (tried == kMaxAttempts || !channel_->WaitForConnected(absl::ToChronoTime(until))) {
      down_.store(true, std::memory_order_relaxed);
      return absl::UnavailableError(absl::StrCat("no connection to a draft server at ", address_,
                                                 " (", status.message(), "); ", remedy_,
                                                 ", and decode without drafts until then"));
    }
  }
}

}  // namespace aerie
