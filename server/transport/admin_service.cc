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

// One that is answered later, on whatever thread. Made with new; Give() ends it.
template <typename Response>
class LateAnswer {
 public:
  LateAnswer(const AdminBackend* backend, std::string_view method,
             grpc::CallbackServerContext* context, const google::protobuf::Message& request,
             Response* response)
      : record_(backend == nullptr ? nullptr : backend->rpc_observer,
                {RpcType::kUnary, kAdminServiceName, method}),
        reactor_(context->DefaultReactor()),
        response_(response) {
    record_.Received(static_cast<int64_t>(request.ByteSizeLong()));
  }

  Response* response() { return response_; }
  grpc::ServerUnaryReactor* reactor() { return reactor_; }

  // `response()` has been filled, or `status` says why not.
  void Give(const absl::Status& status) {
    if (status.ok()) record_.Sent(static_cast<int64_t>(response_->ByteSizeLong()));
    record_.Handled(status.code());
    grpc::ServerUnaryReactor* reactor = reactor_;
    delete this;
    reactor->Finish(status.ok() ? grpc::Status::OK : rpc::ToGrpcStatus(status));
  }

 private:
  RpcRecord record_;
  grpc::ServerUnaryReactor* const reactor_;
  Response* const response_;
};

// Whether a call may be handed on: who asks may, and there is somebody to answer.
absl::Status MayAsk(const AdminBackend* backend, const AccessControl* access,
                    const grpc::CallbackServerContext& context) {
  if (access != nullptr) AERIE_RETURN_IF_ERROR(access->Admit(context, Role::kAdmin).status());
  return backend == nullptr ? StillLoading() : absl::OkStatus();
}

// What takes a status of a drafter over into an answer that has one.
template <typename Response>
LoadDone GiveDrafter(LateAnswer<Response>* answer) {
  return [answer](absl::StatusOr<v1::DrafterStatus> drafter) {
    if (drafter.ok()) *answer->response()->mutable_drafter() = *std::move(drafter);
    answer->Give(drafter.status());
  };
}

absl::StatusOr<v1::ListDraftersResponse> DraftersOf(const AdminBackend* backend,
                                                    const v1::ListDraftersRequest&) {
  if (backend == nullptr) return StillLoading();
  v1::ListDraftersResponse response;
  for (v1::DrafterStatus& drafter : backend->list_drafters()) {
    *response.add_drafters() = std::move(drafter);
  }
  return response;
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

grpc::ServerUnaryReactor* AdminServiceImpl::ListDrafters(grpc::CallbackServerContext* context,
                                                         const v1::ListDraftersRequest* request,
                                                         v1::ListDraftersResponse* response) {
  return Answer(backend_.load(std::memory_order_acquire), access_.get(), "ListDrafters", context,
                *request, response, DraftersOf);
}

grpc::ServerUnaryReactor* AdminServiceImpl::LoadDrafter(grpc::CallbackServerContext* context,
                                                        const v1::LoadDrafterRequest* request,
                                                        v1::LoadDrafterResponse* response) {
  const AdminBackend* backend = backend_.load(std::memory_order_acquire);
  auto* answer = new LateAnswer(backend, "LoadDrafter", context, *request, response);
  grpc::ServerUnaryReactor* reactor = answer->reactor();
  if (const absl::Status may = MayAsk(backend, access_.get(), *context); !may.ok()) {
    answer->Give(may);
  } else {
    backend->load_drafter(request->source(), GiveDrafter(answer));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AdminServiceImpl::ReloadDrafter(grpc::CallbackServerContext* context,
                                                          const v1::ReloadDrafterRequest* request,
                                                          v1::ReloadDrafterResponse* response) {
  const AdminBackend* backend = backend_.load(std::memory_order_acquire);
  auto* answer = new LateAnswer(backend, "ReloadDrafter", context, *request, response);
  grpc::ServerUnaryReactor* reactor = answer->reactor();
  if (const absl::Status may = MayAsk(backend, access_.get(), *context); !may.ok()) {
    answer->Give(may);
    return reactor;
  }
  std::optional<v1::DrafterSource> source;
  if (request->has_source()) source = request->source();
  backend->reload_drafter(request->name(), std::move(source),
                          [answer](absl::StatusOr<v1::ReloadDrafterResponse> reloaded) {
                            if (reloaded.ok()) *answer->response() = *std::move(reloaded);
                            answer->Give(reloaded.status());
                          });
  return reactor;
}

grpc::ServerUnaryReactor* AdminServiceImpl::UnloadDrafter(grpc::CallbackServerContext* context,
                                                          const v1::UnloadDrafterRequest* request,
                                                          v1::UnloadDrafterResponse* response) {
  const AdminBackend* backend = backend_.load(std::memory_order_acquire);
  auto* answer = new LateAnswer(backend, "UnloadDrafter", context, *request, response);
  grpc::ServerUnaryReactor* reactor = answer->reactor();
  if (const absl::Status may = MayAsk(backend, access_.get(), *context); !may.ok()) {
    answer->Give(may);
  } else {
    backend->unload_drafter(request->name(), GiveDrafter(answer));
  }
  return reactor;
}

}  // namespace aerie
