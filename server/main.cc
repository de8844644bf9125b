// aerie-server: loads a drafter, serves it over gRPC until a signal comes, drains, leaves.
//
// Exit codes: 0 after a drain, 1 when loading or listening failed or the drain did not end, 2 for a
// command line that cannot be read. With --probe: 0 the server serves, 1 it does not, 2 it cannot
// be asked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "aerie_version.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/config/flags.h"
#include "server/config/metrics_page.h"
#include "server/config/port_file.h"
#include "server/config/serving_gate.h"
#include "server/config/stop_signal.h"
#include "server/load_model.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/target_metrics.h"
#include "server/model/eagle3_model.h"
#include "server/probe.h"
#include "server/request_log/request_log.h"
#include "server/serving/admin_drafters.h"
#include "server/serving/drafter_registry.h"
#include "server/transport/admin_service.h"
#include "server/transport/draft_service.h"
#include "server/transport/grpc_log.h"
#include "server/transport/grpc_server.h"
#include "server/transport/server_info.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {
namespace {

// Past the drain's deadline, for calls to notice that they have been cancelled.
constexpr absl::Duration kGrace = absl::Seconds(2);
// For the last replies to reach their clients.
constexpr absl::Duration kFlush = absl::Seconds(1);
// Between looks at what only time changes: sources that the guard is to forget, drafters whose last
// session has ended, segments of shared memory whose worker has.
constexpr absl::Duration kTick = absl::Seconds(1);

void LogSettings(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    AERIE_LOG(info, "server {} = {} ({})", setting.name, setting.value, setting.source);
  }
}

absl::Status CutOff(absl::Duration patience) {
  return absl::DeadlineExceededError(absl::StrCat(
      "calls were cut off, still open after --drain-timeout ", absl::FormatDuration(patience),
      "; expected them to end before; give more time, or send prompts in shorter calls"));
}

// Ends the process when a drain does not: a pass that hangs must not outlive the patience of who
// stops us.
class Watchdog {
 public:
  explicit Watchdog(absl::Duration patience)
      : thread_([this, patience] {
          if (done_.WaitForNotificationWithTimeout(patience + kGrace)) return;
          AERIE_LOG(error, "{}", std::string(CutOff(patience).message()));
          std::_Exit(1);
        }) {}
  ~Watchdog() {
    done_.Notify();
    thread_.join();
  }

 private:
  absl::Notification done_;
  std::thread thread_;
};

// DEADLINE_EXCEEDED when calls had to be cut off.
absl::Status Drain(absl::Duration patience, ServingGate* gate, GrpcServer* server,
                   DraftServiceImpl* service, DrafterRegistry* drafters) {
  const absl::Time deadline = absl::Now() + patience;
  gate->SetReady(false);
  service->DrainStreams();
  const bool finished = drafters->Drain(deadline) && service->AwaitStreams(deadline);
  // What is still open now has no end of its own, such as a watch on health, or is past the
  // deadline.
  server->Shutdown(std::min(deadline, absl::Now() + kFlush));
  if (!finished) return CutOff(patience);
  AERIE_LOG(info, "drained");
  return absl::OkStatus();
}

// Null when it is off.
absl::StatusOr<std::unique_ptr<GrpcServer>> StartAdmin(const Options& options,
                                                       AdminServiceImpl* service) {
  if (!options.admin.enabled()) return nullptr;
  GrpcServerOptions grpc = options.grpc;
  grpc.listen = {options.admin.listen};
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<GrpcServer> server, GrpcServer::Start(grpc, service));
  server->SetServing(true);
  AERIE_LOG(info, "administration at {}", server->addresses().front());
  return server;
}

absl::Status Serve(Options options, StopSignal* stop) {
  if (!options.process.port_file.empty()) {
    AERIE_RETURN_IF_ERROR(RemovePortFile(options.process.port_file));
  }
  ServiceLimits limits{.max_message_bytes = options.grpc.max_message_bytes};
  if (options.clients.enabled()) {
    limits.clients = std::make_shared<ClientLimits>(options.clients, absl::Now);
  }
  // Before the service, whose calls use it.
  std::unique_ptr<SharedMemoryBook> shared_memory;
  if (options.shared_memory.enabled) {
    shared_memory =
        std::make_unique<SharedMemoryBook>(options.shared_memory, options.grpc.max_message_bytes);
  }
  DraftServiceImpl service(limits);
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                         GrpcServer::Start(options.grpc, &service));
  for (const std::string& address : server->addresses()) {
    AERIE_LOG(info, "listening on {}; not serving before the drafter is loaded", address);
  }

  AdminServiceImpl admin_service;
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> admin,
                         StartAdmin(options, &admin_service));

  LogSettings(options.settings);
  ServerMetrics server_metrics({kVersion, kRevision, kCompiler, LibTorchVersion()});
  const auto page = std::make_shared<MetricPage>(server_metrics.metrics());
  if (!options.engine.target_quotas.empty()) {
    const auto shares = std::make_shared<TargetQuotas>(options.engine.target_quotas);
    options.engine.target_shares = shares;
    page->Add("target quotas", TargetMetrics([shares] { return shares->Usage(); }));
  }
  std::unique_ptr<RequestLog> request_log;
  if (!options.request_log.path.empty()) {
    AERIE_ASSIGN_OR_RETURN(request_log, RequestLog::Open(options.request_log, &server_metrics));
    AERIE_LOG(info, "request log in {}", options.request_log.path);
  }
  ServingGate gate([&server](bool serving) { server->SetServing(serving); });
  DrafterRegistry drafters(
      {.options = &options,
       .gate = &gate,
       .page = page.get(),
       .request_log = request_log.get(),
       .memory_room = [] { return FindMemoryRoom("/proc", "/sys/fs/cgroup"); }},
      LoadModel, &server_metrics);
  for (const DrafterOptions& source : options.AllDrafters()) {
    AERIE_RETURN_IF_ERROR(drafters.LoadAtStart(source));
  }
  for (const ServedDrafterPtr& drafter : drafters.directory().Current()) {
    const DrafterSpec& spec = drafter->engine->spec();
    options.LimitRowsToMessage(spec.wiring.size() * int64_t{spec.target_hidden_size});
  }
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<Exporter> exporter, StartMetricsPage(options, page));
  service.Serve({.drafters = &drafters.directory(),
                 .info = BuildServerInfo({kVersion, kRevision, kCompiler, LibTorchVersion()},
                                         options.settings, options.wiring_guard),
                 .rpc_observer = &server_metrics,
                 .shared_memory = shared_memory.get()});
  AdminBackend admin_backend{.rpc_observer = &server_metrics};
  if (options.wiring_guard != GuardMode::kOff) {
    admin_backend.wiring_reports = [&drafters] { return drafters.WiringReports(); };
  }
  AddDrafters(&drafters, &admin_backend);
  admin_service.Serve(std::move(admin_backend));
  stop->SetHangupHandler([&drafters] { drafters.ReloadAll(); });
  const auto no_hangups = absl::MakeCleanup([stop] { stop->SetHangupHandler(nullptr); });
  gate.SetReady(true);
  absl::Status written;
  if (!options.process.port_file.empty()) {
    written = WritePortFile(options.process.port_file,
                            {.grpc = server->addresses(),
                             .metrics = exporter == nullptr ? "" : exporter->address(),
                             .admin = admin == nullptr ? "" : admin->addresses().front()});
  }
  if (written.ok()) {
    for (const ServedDrafterPtr& drafter : drafters.directory().Current()) {
      AERIE_LOG(info, "ready: drafter {} version {}", drafter->name, drafter->info.version());
    }
    while (!stop->WaitFor(kTick)) {
      drafters.Tick(absl::Now());
      if (shared_memory != nullptr) shared_memory->ForgetDead();
    }
  }
  const Watchdog watchdog(options.process.drain_timeout);
  const absl::Status drained =
      Drain(options.process.drain_timeout, &gate, server.get(), &service, &drafters);
  drafters.AwaitLoads();
  // Last, so that a drain can be watched; before what its calls ask goes away.
  if (admin != nullptr) admin->Shutdown(absl::Now());
  return written.ok() ? drained : written;
}

// Between debug and the level that the server was started with.
void ToggleDebug(const std::string& configured) {
  const std::string usual = configured == "debug" ? "info" : configured;
  const std::string level = GetLogLevel() == "debug" ? usual : "debug";
  if (const absl::Status changed = ChangeLogLevel(level, "SIGUSR1"); !changed.ok()) {
    AERIE_LOG(error, "{}", std::string(changed.message()));
  }
}

absl::Status StartLog(const ProcessOptions& options) {
  AERIE_ASSIGN_OR_RETURN(const LogFormat format, ParseLogFormat(options.log_format));
  return SetUpLog(options.log_level, format);
}

int Main(int argc, char** argv) {
  // Abseil as packaged keeps a graph of who holds which lock, under a lock of its own, and gRPC
  // takes some dozens of locks for a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::StatusOr<Invocation> invocation =
      ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc), ProcessEnvironment());
  absl::Status usage = invocation.status();
  if (usage.ok() && invocation->print) {
    std::fputs(invocation->print->c_str(), stdout);
    return 0;
  }
  if (usage.ok() && invocation->probe) return Probe(*invocation->probe);
  if (usage.ok()) usage = StartLog(invocation->options.process);
  if (!usage.ok()) {
    std::fprintf(stderr, "aerie-server: %s\n", std::string(usage.message()).c_str());
    return 2;
  }
  SendGrpcLogToOurs();
  // Lives as long as the process, as its thread does.
  static StopSignal* const stop =
      new StopSignal([level = invocation->options.process.log_level] { ToggleDebug(level); });
  const absl::Status status = Serve(invocation->options, stop);
  if (status.ok()) return 0;
  AERIE_LOG(error, "{}", std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) { return aerie::Main(argc, argv); }
