// aerie-server: loads a drafter, serves it over gRPC until a signal comes, drains, leaves.
//
// Exit codes: 0 after a drain, 1 when loading or listening failed or the drain did not end, 2 for a
// command line that cannot be read. With --probe: 0 the server serves, 1 it does not, 2 it cannot
// be asked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "aerie_version.h"
#include "common/log.h"
#include "common/rpc/health_check.h"
#include "common/status_macros.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/checkpoint/checkpoint.h"
#include "server/config/flags.h"
#include "server/config/guard_setup.h"
#include "server/config/port_file.h"
#include "server/config/row_watchers.h"
#include "server/config/serving_gate.h"
#include "server/config/stop_signal.h"
#include "server/engine/draft_engine.h"
#include "server/engine/kv_limits.h"
#include "server/engine/round_observer_list.h"
#include "server/metrics/exporter.h"
#include "server/metrics/prometheus_observer.h"
#include "server/model/eagle3_model.h"
#include "server/request_log/request_log.h"
#include "server/transport/admin_service.h"
#include "server/transport/draft_service.h"
#include "server/transport/grpc_log.h"
#include "server/transport/grpc_server.h"
#include "server/transport/server_info.h"

namespace aerie {
namespace {

// Past the drain's deadline, for calls to notice that they have been cancelled.
constexpr absl::Duration kGrace = absl::Seconds(2);
// For the last replies to reach their clients.
constexpr absl::Duration kFlush = absl::Seconds(1);
// Within what those who probe a container usually allow.
constexpr absl::Duration kProbePatience = absl::Seconds(3);

// Between looks at what only time changes: sources that the guard is to forget.
constexpr absl::Duration kTick = absl::Seconds(10);

struct LoadedDrafter {
  std::unique_ptr<DraftModel> model;
  std::string guard_profile;  // of wiring.json; empty: there is none
};

absl::StatusOr<LoadedDrafter> LoadDrafter(const Options& options) {
  CheckpointOptions checkpoint_options;
  checkpoint_options.name = options.drafter.name;
  checkpoint_options.embedding_key = options.drafter.embedding_key;
  checkpoint_options.head = {.layer_ids = options.drafter.layer_ids,
                             .norm_before_residual = options.drafter.norm_before_residual,
                             .norm_output = options.drafter.norm_output,
                             .rope_theta = options.drafter.rope_theta,
                             .ignored_config_keys = options.drafter.ignored_config_keys};
  AERIE_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      LoadCheckpoint(options.drafter.drafter, options.drafter.target, checkpoint_options));
  for (const std::string& warning : checkpoint.warnings) AERIE_LOG(warn, "drafter: {}", warning);

  ModelOptions model_options;
  model_options.device = options.compute.device;
  if (options.compute.dtype == "float32") model_options.dtype = ComputeDType::kFloat32;
  if (options.compute.dtype == "bfloat16") model_options.dtype = ComputeDType::kBFloat16;
  if (options.compute.dtype == "int8") model_options.dtype = ComputeDType::kInt8;
  model_options.threads = options.compute.threads;
  model_options.kv_memory_bytes = options.kv.memory_bytes;
  model_options.kv_page_rows = options.kv.page_rows;
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<DraftModel> model,
                         LoadEagle3Model(checkpoint, model_options));
  return LoadedDrafter{std::move(model), checkpoint.guard_profile};
}

std::string ValueOf(const std::vector<Setting>& settings, const std::string& name) {
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting.value;
  }
  return {};
}

// The last part of the folder's path: what people call the model.
std::string NameOfTarget(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

PrometheusOptions MetricsOf(const DrafterSpec& spec, const KvStore& kv_store,
                            const Options& options) {
  PrometheusOptions out;
  out.labels = {spec.name, spec.version, NameOfTarget(options.drafter.target)};
  out.build = {kVersion, kRevision, kCompiler, LibTorchVersion()};
  out.drafter.wiring = spec.wiring.ToString();
  out.drafter.device = options.compute.device;
  out.drafter.dtype = ValueOf(spec.settings, "compute_dtype");
  out.drafter.draft_vocab_size = spec.draft_vocab_size;
  out.drafter.hidden_size = spec.hidden_size;
  out.max_k = options.engine.max_k;
  out.max_sessions_per_pass = options.engine.max_sessions_per_pass;
  out.kv_pages = kv_store.num_pages;
  out.kv_page_bytes = kv_store.page_bytes;
  return out;
}

void LogSettings(const char* what, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    AERIE_LOG(info, "{} {} = {} ({})", what, setting.name, setting.value, setting.source);
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
                   DraftServiceImpl* service, DraftEngine* engine) {
  const absl::Time deadline = absl::Now() + patience;
  gate->SetReady(false);
  service->DrainStreams();
  const bool finished = engine->Drain(deadline) && service->AwaitStreams(deadline);
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
  DraftServiceImpl service(ServiceLimits{.max_message_bytes = options.grpc.max_message_bytes});
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                         GrpcServer::Start(options.grpc, &service));
  for (const std::string& address : server->addresses()) {
    AERIE_LOG(info, "listening on {}; not serving before the drafter is loaded", address);
  }

  AdminServiceImpl admin_service;
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> admin,
                         StartAdmin(options, &admin_service));

  AERIE_ASSIGN_OR_RETURN(LoadedDrafter drafter, LoadDrafter(options));
  const DrafterSpec spec = drafter.model->spec();
  const KvStore kv_store = drafter.model->kv_store();
  AERIE_RETURN_IF_ERROR(CheckKvFits(options.engine, kv_store));
  options.LimitRowsToMessage(spec.wiring.size() * int64_t{spec.target_hidden_size});
  SetLogDrafter(spec.name);
  LogSettings("server", options.settings);
  LogSettings("drafter", spec.settings);
  AERIE_ASSIGN_OR_RETURN(std::optional<GuardProfile> profile,
                         LoadGuardProfile(options.wiring_guard, drafter.guard_profile, spec.wiring,
                                          spec.target_hidden_size));
  AERIE_LOG(info, "{}", DescribeGuard(options.wiring_guard, profile));
  const GuardInfo guard_info{options.wiring_guard, profile.has_value()};

  PrometheusOptions metrics = MetricsOf(spec, kv_store, options);
  metrics.wiring = WiringFactsOf(options.wiring_guard, spec.wiring, profile);
  PrometheusObserver observer(metrics);
  std::unique_ptr<Exporter> exporter;
  if (options.metrics.enabled()) {
    AERIE_ASSIGN_OR_RETURN(exporter, StartExporter(options.metrics.listen, observer.metrics()));
    AERIE_LOG(info, "metrics at http://{}/metrics", exporter->address());
  }

  std::unique_ptr<RequestLog> request_log;
  std::vector<RoundObserver*> observers = {&observer};
  if (!options.request_log.path.empty()) {
    AERIE_ASSIGN_OR_RETURN(
        request_log, RequestLog::Open(options.request_log, {spec.name, spec.version}, &observer));
    observers.push_back(request_log.get());
    AERIE_LOG(info, "request log in {}", options.request_log.path);
  }
  RoundObserverList all_observers(std::move(observers));

  ServingGate gate([&server](bool serving) { server->SetServing(serving); });
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<RowWatchers> watchers,
                         RowWatchers::Start(options, spec, std::move(profile), &observer, &gate));
  DraftEngine engine(options.engine, std::move(drafter.model), &all_observers,
                     watchers->row_observer());
  ServiceBackend backend{
      .engine = &engine,
      .info = BuildServerInfo(spec, kv_store, options.engine, options.grpc.max_message_bytes,
                              {kVersion, kRevision, kCompiler, LibTorchVersion()}, options.settings,
                              guard_info),
      .round_observer = &all_observers,
      .rpc_observer = &observer};
  watchers->AddTo(&backend);
  service.Serve(std::move(backend));
  AdminBackend admin_backend{.rpc_observer = &observer};
  watchers->AddTo(&admin_backend);
  admin_service.Serve(std::move(admin_backend));
  gate.SetReady(true);
  absl::Status written;
  if (!options.process.port_file.empty()) {
    written = WritePortFile(options.process.port_file,
                            {.grpc = server->addresses(),
                             .metrics = exporter == nullptr ? "" : exporter->address(),
                             .admin = admin == nullptr ? "" : admin->addresses().front()});
  }
  if (written.ok()) {
    AERIE_LOG(info, "ready: drafter {} version {}", spec.name, spec.version);
    while (!stop->WaitFor(kTick)) watchers->Tick(absl::Now());
  }
  const Watchdog watchdog(options.process.drain_timeout);
  const absl::Status drained =
      Drain(options.process.drain_timeout, &gate, server.get(), &service, &engine);
  // Last, so that a drain can be watched; before what its calls ask goes away.
  if (admin != nullptr) admin->Shutdown(absl::Now());
  return written.ok() ? drained : written;
}

int Probe(const std::string& address) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const absl::StatusOr<rpc::Health> health =
      rpc::CheckHealth(channel, /*service=*/"", absl::Now() + kProbePatience);
  if (!health.ok()) {
    std::fprintf(stderr,
                 "aerie-server: the server at %s cannot be asked for its health: %s; expected an "
                 "aerie-server that listens there; compare --probe with its --listen\n",
                 address.c_str(), std::string(health.status().message()).c_str());
    return 2;
  }
  const bool serving = *health == rpc::Health::kServing;
  std::puts(serving ? "SERVING" : "NOT_SERVING");
  return serving ? 0 : 1;
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
