// The gRPC face for who runs the server: one short method per RPC.
//
// Methods run on gRPC's threads and answer at once, save those that load or unload: these are
// answered when they are done. A call that comes before Serve() is answered
// UNAVAILABLE, save those about the log: a start that takes long is when one wants to see more.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aerie/v1/admin.grpc.pb.h"
#include "common/wiring_report.h"
#include "server/transport/access_control.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

inline constexpr char kAdminServiceName[] = "aerie.v1.AdminService";

using LoadDone = std::function<void(absl::StatusOr<v1::DrafterStatus>)>;
using ReloadDone = std::function<void(absl::StatusOr<v1::ReloadDrafterResponse>)>;

// What is asked. The functions are called on any thread, must not block, and are good until the
// service's server has been shut down.
struct AdminBackend {
  // What the live guard thinks of each source. Empty: the guard is off.
  std::function<std::vector<WiringReport>()> wiring_reports;
  // Drafters. The last three answer on a thread of their own, whenever they are done.
  std::function<std::vector<v1::DrafterStatus>()> list_drafters;
  std::function<void(v1::DrafterSource, LoadDone)> load_drafter;
  std::function<void(std::string name, std::optional<v1::DrafterSource>, ReloadDone)>
      reload_drafter;
  std::function<void(std::string name, LoadDone)> unload_drafter;
  RpcObserver* rpc_observer = nullptr;  // may be null
};

class AdminServiceImpl final : public v1::AdminService::CallbackService {
 public:
  // Who may call; before there are calls. Without it everybody may.
  void Guard(std::shared_ptr<const AccessControl> access) { access_ = std::move(access); }

  // From now on calls are served. Once; any thread.
  void Serve(AdminBackend backend);

  grpc::ServerUnaryReactor* GetWiringReport(grpc::CallbackServerContext* context,
                                            const v1::GetWiringReportRequest* request,
                                            v1::GetWiringReportResponse* response) override;
  grpc::ServerUnaryReactor* GetLogLevel(grpc::CallbackServerContext* context,
                                        const v1::GetLogLevelRequest* request,
                                        v1::GetLogLevelResponse* response) override;
  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context,
                                        const v1::SetLogLevelRequest* request,
                                        v1::SetLogLevelResponse* response) override;
  grpc::ServerUnaryReactor* ListDrafters(grpc::CallbackServerContext* context,
                                         const v1::ListDraftersRequest* request,
                                         v1::ListDraftersResponse* response) override;
  grpc::ServerUnaryReactor* LoadDrafter(grpc::CallbackServerContext* context,
                                        const v1::LoadDrafterRequest* request,
                                        v1::LoadDrafterResponse* response) override;
  grpc::ServerUnaryReactor* ReloadDrafter(grpc::CallbackServerContext* context,
                                          const v1::ReloadDrafterRequest* request,
                                          v1::ReloadDrafterResponse* response) override;
  grpc::ServerUnaryReactor* UnloadDrafter(grpc::CallbackServerContext* context,
                                          const v1::UnloadDrafterRequest* request,
                                          v1::UnloadDrafterResponse* response) override;

 private:
  std::shared_ptr<const AccessControl> access_;  // may be null
  std::unique_ptr<const AdminBackend> backend_owner_;
  std::atomic<const AdminBackend*> backend_{nullptr};  // null until Serve()
};

}  // namespace aerie
