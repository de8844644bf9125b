#include "server/transport/admin_service.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/log.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/wiring_report_codec.h"
#include "common/status_macros.h"
#include "server/transport/draft_messages.h"
#include "server/transport/rpc_record.h"

namespace aerie {
namespace {

// Answers a call with what `ask` says: a response, or why there is none. `backend` is null until
// the drafter is loaded, `access` when everybody may ask. `method` is static text.
template <typename Request, typename Response, typename Ask>
grpc::ServerUnaryReactor* Answer(const AdminBackend* backend, const AccessControl* access,
                                 std::string_view method, grpc::CallbackServerContext* context,
                                 const Request& request, Response* response, Ask ask) {
  RpcRecord record(backend == nullptr ? nullptr : backend->rpc_observer,
                   {RpcType::kUnary, kAdminServiceName, method});
  record.Received(static_cast<int64_t>(request.ByteSizeLong()));
  absl::Status admitted;
  if (access != nullptr) admitted = access->Admit(*context, Role::kAdmin).status();
  absl::StatusOr<Response> answer =
      admitted.ok() ? ask(backend, request) : absl::StatusOr<Response>(admitted);
  if (answer.ok()) {
    *response = *std::move(answer);
    record.Sent(static_cast<int64_t>(response->ByteSizeLong()));
  }
  record.Handled(answer.status().code());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(answer.ok() ? grpc::Status::OK : rpc::ToGrpcStatus(answer.status()));
  return reactor;
}

absl::StatusOr<v1::GetWiringReportResponse> WiringReportOf(
    const AdminBackend* backend, const v1::GetWiringReportRequest& request) {
  if (backend == nullptr) return StillLoading();
  if (!backend->wiring_reports) {
    return absl::FailedPreconditionError(
        "a wiring report was asked for, but the guard is off; expected a server with the guard; "
        "start it with --wiring-guard=alert");
  }
  std::vector<WiringReport> reports = backend->wiring_reports();
  if (!request.client().empty()) {
    std::erase_if(reports,
                  [&](const WiringReport& report) { return report.client != request.client(); });
  }
  return rpc::EncodeWiringReports(reports, WorstWiringState(reports));
}

struct LevelName {
  v1::LogLevel level;
  const char* name;
};
constexpr LevelName kLevelNames[] = {{v1::LOG_LEVEL_DEBUG, "debug"},
                                     {v1::LOG_LEVEL_INFO, "info"},
                                     {v1::LOG_LEVEL_WARN, "warn"},
                                     {v1::LOG_LEVEL_ERROR, "error"},
                                     {v1::LOG_LEVEL_OFF, "off"}};

v1::LogLevel CurrentLevel() {
  const std::string current = aerie::GetLogLevel();
  for (const LevelName& known : kLevelNames) {
    if (current == known.name) return known.level;
  }
  return v1::LOG_LEVEL_UNSPECIFIED;
}

absl::StatusOr<v1::GetLogLevelResponse> LogLevelOf(const AdminBackend*,
                                                   const v1::GetLogLevelRequest&) {
  v1::GetLogLevelResponse response;
  response.set_level(CurrentLevel());
  return response;
}

absl::StatusOr<v1::SetLogLevelResponse> SetLevel(const AdminBackend*,
                                                 const v1::SetLogLevelRequest& request) {
  for (const LevelName& known : kLevelNames) {
    if (request.level() != known.level) continue;
    v1::SetLogLevelResponse response;
    response.set_previous(CurrentLevel());
    AERIE_RETURN_IF_ERROR(aerie::ChangeLogLevel(known.name, "SetLogLevel"));
    return response;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("level is ", static_cast<int>(request.level()),
                   "; expected LOG_LEVEL_DEBUG, _INFO, _WARN, _ERROR or _OFF; name one of them"));
}

}  // namespace

void AdminServiceImpl::Serve(AdminBackend backend) {
  AERIE_CHECK(backend_owner_ == nullptr) << "a service has one backend";
  backend_owner_ = std::make_unique<const AdminBackend>(std::move(backend));
  backend_.store(backend_owner_.get(), std::memory_order_release);
}

grpc::ServerUnaryReactor* AdminServiceImpl::GetWiringReport(
    grpc::CallbackServerContext* context, const v1::GetWiringReportRequest* request,
    v1::GetWiringReportResponse* response) {
  return Answer(backend_.load(std::memory_order_acquire), access_.get(), "GetWiringReport", context,
                *request, response, WiringReportOf);
}

grpc::ServerUnaryReactor* AdminServiceImpl::GetLogLevel(grpc::CallbackServerContext* context,
                                                        const v1::GetLogLevelRequest* request,
                                                        v1::GetLogLevelResponse* response) {
  return Answer(backend_.load(std::memory_order_acquire), access_.get(), "GetLogLevel", context,
                *request, response, LogLevelOf);
}

grpc::ServerUnaryReactor* AdminServiceImpl::SetLogLevel(grpc::CallbackServerContext* context,
                                                        const v1::SetLogLevelRequest* request,
                                                        v1::SetLogLevelResponse* response) {
  return Answer(backend_.load(std::memory_order_acquire), access_.get(), "SetLogLevel", context,
                *request, response, SetLevel);
}

}  // namespace aerie
