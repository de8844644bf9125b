#include "server/transport/grpc_server.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/address.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "server/transport/tls_credentials.h"
#include "server/transport/unix_socket.h"

namespace aerie {
namespace {

constexpr int64_t kMinMessageBytes = 64 * 1024;
constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;

// Linked in, the reflection library adds itself to every server of the process; whether one has it
// is ours to say.
class ReflectionOption final : public grpc::ServerBuilderOption {
 public:
  explicit ReflectionOption(bool wanted) : wanted_(wanted) {}
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    auto reflection = std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>();
    std::erase_if(*plugins,
                  [&](const auto& plugin) { return plugin->name() == reflection->name(); });
    if (wanted_) plugins->push_back(std::move(reflection));
  }

 private:
  const bool wanted_;
};

void SetConnectionArguments(grpc::ServerBuilder* builder) {
  // Without it a second server would share the port in silence.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Our clients ping idle connections every 20 s, proxies more often: behind one, a ping without an
  // answer is all that tells of a host that vanished.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  // And the server pings too: a client whose host has gone must not hold its sessions for ever.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
}

// The address that a client dials: `port` in the place of the 0 that was asked for.
std::string BoundAddress(const std::string& address, int port) {
  if (IsUnixAddress(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

// One for each address: gRPC asks for changed certificates an address at a time. Makes way for Unix
// sockets too.
absl::StatusOr<std::vector<std::shared_ptr<grpc::ServerCredentials>>> CredentialsFor(
    const GrpcServerOptions& options, const char* flag) {
  std::vector<std::shared_ptr<grpc::ServerCredentials>> out;
  for (const std::string& address : options.listen) {
    if (IsUnixAddress(address)) {
      AERIE_RETURN_IF_ERROR(ClearSocket(flag, address));
      out.push_back(grpc::InsecureServerCredentials());
    } else if (options.security.tls()) {
      AERIE_ASSIGN_OR_RETURN(out.emplace_back(), TlsCredentials(options.security));
    } else {
      out.push_back(grpc::InsecureServerCredentials());
    }
  }
  return out;
}

}  // namespace

absl::Status GrpcServerOptions::Validate() const {
  if (listen.empty()) {
    return absl::InvalidArgumentError(
        "--listen is empty; expected at least one address; give host:port or unix:PATH");
  }
  for (const std::string& address : listen) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--listen is \"", address,
                       "\"; expected host:port or unix:PATH; give an address such as "
                       "127.0.0.1:50051 or unix:/run/aerie.sock"));
    }
  }
  if (max_message_bytes < kMinMessageBytes || max_message_bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-message-bytes is ", max_message_bytes, "; expected ", kMinMessageBytes, "..",
        kMaxMessageBytes, "; give the bytes that the rows of one call may take"));
  }
  AERIE_RETURN_IF_ERROR(security.Validate());
  return CheckExposure(security, "--listen", listen);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              DraftServiceImpl* service) {
  return Start(options, Served{service, kDraftServiceName, "--listen",
                               [service](auto access) { service->Guard(std::move(access)); }});
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              AdminServiceImpl* service) {
  return Start(options, Served{service, kAdminServiceName, "--admin-listen",
                               [service](auto access) { service->Guard(std::move(access)); }});
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const Served& served) {
  static std::once_flag health_once;
  std::call_once(health_once, [] { grpc::EnableDefaultHealthCheckService(true); });

  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<AccessControl> access,
                         AccessControl::Create(options.security));
  served.guard(std::move(access));
  AERIE_ASSIGN_OR_RETURN(Credentials credentials, CredentialsFor(options, served.flag));
  for (const std::string& warning :
       ExposureWarnings(options.security, served.flag, options.listen)) {
    AERIE_LOG(warn, "{}", warning);
  }
  grpc::ServerBuilder builder;
  SetConnectionArguments(&builder);
  // Up to twice the limit a request is read and refused by the service, which can say what to do; a
  // larger one is cut off by gRPC.
  builder.SetMaxReceiveMessageSize(static_cast<int>(
      std::min<int64_t>(options.max_message_bytes * 2, std::numeric_limits<int>::max())));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  builder.RegisterService(served.service);
  builder.SetOption(
      std::make_unique<ReflectionOption>(options.reflection && !options.security.tokens()));
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < ports.size(); ++i) {
    builder.AddListeningPort(options.listen[i], credentials[i], &ports[i]);
  }

  const SocketMode mode(options.security.unix_socket_mode);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::string> failed;
  std::vector<std::string> addresses;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i] <= 0) failed.push_back(options.listen[i]);
    addresses.push_back(BoundAddress(options.listen[i], ports[i]));
  }
  if (server == nullptr || !failed.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", absl::StrJoin(failed.empty() ? options.listen : failed, ", "),
        "; expected an address of this host that no other program holds; change ", served.flag,
        ", or stop the program that holds it"));
  }
  std::unique_ptr<GrpcServer> out(
      new GrpcServer(std::move(credentials), std::move(server), served.name, std::move(addresses)));
  out->SetServing(false);
  return out;
}

GrpcServer::GrpcServer(Credentials credentials, std::unique_ptr<grpc::Server> server,
                       const char* service_name, std::vector<std::string> addresses)
    : credentials_(std::move(credentials)),
      server_(std::move(server)),
      service_name_(service_name),
      addresses_(std::move(addresses)) {}

GrpcServer::~GrpcServer() { Shutdown(absl::InfinitePast()); }

void GrpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus(service_name_, serving);
}

void GrpcServer::Shutdown(absl::Time deadline) {
  server_->Shutdown(absl::ToChronoTime(std::max(deadline, absl::Now())));
}

}  // namespace aerie
