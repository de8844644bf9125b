#include "server/transport/admin_service.h"

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/check.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/wiring_report_codec.h"
#include "server/transport/draft_messages.h"
#include "server/transport/rpc_record.h"

namespace aerie {
namespace {

// Answers a call with what `ask` says: a response, or why there is none. `method` is static text.
template <typename Request, typename Response, typename Ask>
grpc::ServerUnaryReactor* Answer(const AdminBackend* backend, std::string_view method,
                                 grpc::CallbackServerContext* context, const Request& request,
                                 Response* response, Ask ask) {
  RpcRecord record(backend == nullptr ? nullptr : backend->rpc_observer,
                   {RpcType::kUnary, kAdminServiceName, method});
  record.Received(static_cast<int64_t>(request.ByteSizeLong()));
  absl::StatusOr<Response> answer = StillLoading();
  if (backend != nullptr) answer = ask(*backend, request);
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
    const AdminBackend& backend, const v1::GetWiringReportRequest& request) {
  if (!backend.wiring_reports) {
    return absl::FailedPreconditionError(
        "a wiring report was asked for, but the guard is off; expected a server with the guard; "
        "start it with --wiring-guard=alert");
  }
  std::vector<WiringReport> reports = backend.wiring_reports();
  if (!request.client().empty()) {
    std::erase_if(reports,
                  [&](const WiringReport& report) { return report.client != request.client(); });
  }
  return rpc::EncodeWiringReports(reports, WorstWiringState(reports));
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
  return Answer(backend_.load(std::memory_order_acquire), "GetWiringReport", context, *request,
                response, WiringReportOf);
}

}  // namespace aerie
