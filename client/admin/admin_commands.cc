#include "client/admin/admin_commands.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "aerie/v1/admin.grpc.pb.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "client/admin/admin_text.h"
#include "common/check.h"
#include "common/rpc/health_check.h"
#include "common/rpc/status_codec.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"

namespace aerie::admin {
namespace {

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(message, &json, options);
  AERIE_CHECK(written.ok()) << written.ToString();
  return json + "\n";
}

// One command's way to its server.
class Line {
 public:
  Line(const std::string& address, const char* flag, const AdminOptions& options,
       const rpc::ChannelSecrets& secrets)
      : address_(address),
        flag_(flag),
        deadline_(absl::Now() + options.timeout),
        channel_(rpc::OpenChannel(address, secrets)) {
    context_.set_deadline(absl::ToChronoTime(deadline_));
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  absl::Time deadline() const { return deadline_; }
  grpc::ClientContext* context() { return &context_; }

  Outcome Failed(const absl::Status& status) const {
    std::string hint = absl::StrCat("; expected an aerie-server there; compare ", flag_);
    if (absl::IsUnimplemented(status)) {
      hint = absl::StrCat(
          "; expected a listener with that service: drafting and administration have one each; "
          "compare ",
          flag_, " with the server's --listen and --admin-listen");
    } else if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
      hint.clear();  // the server's own words say what to do
    }
    return {.code = kNotAsked,
            .out = "",
            .err = absl::StrCat("the server at ", address_, " gave no answer: ", status.message(),
                                hint, "\n")};
  }

 private:
  const std::string address_;
  const char* const flag_;
  const absl::Time deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
};

Outcome AskHealth(const AdminOptions& options, const rpc::ChannelSecrets& secrets) {
  Line line(options.address, "--address", options, secrets);
  const absl::StatusOr<rpc::Health> health =
      rpc::CheckHealth(line.channel(), /*service=*/"", line.deadline());
  if (!health.ok()) return line.Failed(health.status());
  const bool serving = *health == rpc::Health::kServing;
  const std::string name = serving ? "SERVING" : "NOT_SERVING";
  return {.code = serving ? kDone : kNotServing,
          .out = options.json ? absl::StrCat("{\"status\":\"", name, "\"}\n") : name + "\n",
          .err = ""};
}

Outcome AskInfo(const AdminOptions& options, const rpc::ChannelSecrets& secrets) {
  Line line(options.address, "--address", options, secrets);
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

Outcome AskWiring(const AdminOptions& options, const rpc::ChannelSecrets& secrets) {
  Line line(options.admin_address, "--admin-address", options, secrets);
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

Outcome AskLogLevel(const AdminOptions& options, const rpc::ChannelSecrets& secrets) {
  Line line(options.admin_address, "--admin-address", options, secrets);
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

Outcome Run(const AdminOptions& options) {
  const absl::StatusOr<rpc::ChannelSecrets> secrets = rpc::ReadChannelFiles(options.files);
  if (!secrets.ok()) {
    return {.code = kNotAsked, .out = "", .err = absl::StrCat(secrets.status().message(), "\n")};
  }
  switch (options.command) {
    case Command::kHealth:
      return AskHealth(options, *secrets);
    case Command::kInfo:
      return AskInfo(options, *secrets);
    case Command::kWiring:
      return AskWiring(options, *secrets);
    case Command::kLogLevel:
      return AskLogLevel(options, *secrets);
  }
  AERIE_CHECK(false) << "no such command";
}

}  // namespace aerie::admin
