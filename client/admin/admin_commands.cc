#include "client/admin/admin_commands.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "aerie/v1/admin.grpc.pb.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "client/admin/admin_line.h"
#include "client/admin/admin_text.h"
#include "client/admin/drafter_commands.h"
#include "common/check.h"
#include "common/rpc/channel.h"
#include "common/rpc/health_check.h"
#include "common/rpc/status_codec.h"

namespace aerie::admin {
namespace {

Outcome AskHealth(const AdminOptions& options) {
  Line line(options.address, "--address", options);
  const absl::StatusOr<rpc::Health> health =
      rpc::CheckHealth(line.channel(), /*service=*/"", line.deadline());
  if (!health.ok()) return line.Failed(health.status());
  const bool serving = *health == rpc::Health::kServing;
  const std::string name = serving ? "SERVING" : "NOT_SERVING";
  return {.code = serving ? kDone : kNotServing,
          .out = options.json ? absl::StrCat("{\"status\":\"", name, "\"}\n") : name + "\n",
          .err = ""};
}

Outcome AskInfo(const AdminOptions& options) {
  Line line(options.address, "--address", options);
  v1::GetServerInfoResponse info;
  const absl::Status asked = rpc::FromGrpcStatus(
      v1::DraftService::NewStub(line.channel())->GetServerInfo(line.context(), {}, &info));
  if (!asked.ok()) return line.Failed(asked);
  return {.code = kDone, .out = options.json ? ToJson(info) : ToText(info), .err = ""};
}

ExitCode CodeOf(v1::WiringState worst) {
  if (worst == v1::WIRING_STATE_WRONG) return kWiringWrong;
  return worst == v1::WIRING_STATE_OK ? kDone : kWiringOpen;
}

Outcome AskWiring(const AdminOptions& options) {
  Line line(options.admin_address, "--admin-address", options);
  v1::GetWiringReportRequest request;
  request.set_client(options.client);
  v1::GetWiringReportResponse reports;
  const absl::Status asked =
      rpc::FromGrpcStatus(v1::AdminService::NewStub(line.channel())
                              ->GetWiringReport(line.context(), request, &reports));
  if (!asked.ok()) return line.Failed(asked);
  return {.code = CodeOf(reports.worst()),
          .out = options.json ? ToJson(reports) : ToText(reports),
          .err = ""};
}

Outcome AskLogLevel(const AdminOptions& options) {
  Line line(options.admin_address, "--admin-address", options);
  const auto stub = v1::AdminService::NewStub(line.channel());
  if (options.level.empty()) {
    v1::GetLogLevelResponse response;
    const absl::Status asked =
        rpc::FromGrpcStatus(stub->GetLogLevel(line.context(), {}, &response));
    if (!asked.ok()) return line.Failed(asked);
    return {.code = kDone,
            .out = options.json ? ToJson(response) : NameOf(response.level()) + "\n",
            .err = ""};
  }
  const absl::StatusOr<v1::LogLevel> level = LogLevelOf(options.level);
  if (!level.ok()) {
    return {.code = kNotAsked, .out = "", .err = absl::StrCat(level.status().message(), "\n")};
  }
  v1::SetLogLevelRequest request;
  request.set_level(*level);
  v1::SetLogLevelResponse response;
  const absl::Status told =
      rpc::FromGrpcStatus(stub->SetLogLevel(line.context(), request, &response));
  if (!told.ok()) return line.Failed(told);
  return {.code = kDone,
          .out = options.json
                     ? ToJson(response)
                     : absl::StrCat(options.level, ", was ", NameOf(response.previous()), "\n"),
          .err = ""};
}

}  // namespace

Outcome Run(AdminOptions options) {
  absl::StatusOr<rpc::ChannelSecrets> secrets = rpc::ReadChannelFiles(options.files);
  if (!secrets.ok()) {
    return {.code = kNotAsked, .out = "", .err = absl::StrCat(secrets.status().message(), "\n")};
  }
  options.secrets = *std::move(secrets);
  switch (options.command) {
    case Command::kHealth:
      return AskHealth(options);
    case Command::kInfo:
      return AskInfo(options);
    case Command::kWiring:
      return AskWiring(options);
    case Command::kLogLevel:
      return AskLogLevel(options);
    case Command::kDrafters:
      return ListDrafters(options);
    case Command::kLoad:
      return LoadDrafter(options);
    case Command::kReload:
      return ReloadDrafter(options);
    case Command::kUnload:
      return UnloadDrafter(options);
  }
  AERIE_CHECK(false) << "no such command";
}

}  // namespace aerie::admin
