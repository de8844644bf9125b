// aerie-server: loads a drafter, serves it over gRPC until a signal comes, drains, leaves.
//
// Exit codes: 0 after a drain, 1 when loading or listening failed or the drain did not end, 2 for a
// command line that cannot be read.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "aerie_version.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/checkpoint/checkpoint.h"
#include "server/config/flags.h"
#include "server/config/port_file.h"
#include "server/config/stop_signal.h"
#include "server/engine/draft_engine.h"
#include "server/engine/kv_limits.h"
#include "server/metrics/exporter.h"
#include "server/metrics/prometheus_observer.h"
#include "server/model/eagle3_model.h"
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

absl::StatusOr<std::unique_ptr<DraftModel>> LoadModel(const Options& options) {
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
  return LoadEagle3Model(checkpoint, model_options);
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
absl::Status Drain(absl::Duration patience, GrpcServer* server, DraftServiceImpl* service,
                   DraftEngine* engine) {
  const absl::Time deadline = absl::Now() + patience;
  server->SetServing(false);
  service->DrainStreams();
  const bool finished = engine->Drain(deadline) && service->AwaitStreams(deadline);
  // What is still open now has no end of its own, such as a watch on health, or is past the
  // deadline.
  server->Shutdown(std::min(deadline, absl::Now() + kFlush));
  if (!finished) return CutOff(patience);
  AERIE_LOG(info, "drained");
  return absl::OkStatus();
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

  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<DraftModel> model, LoadModel(options));
  const DrafterSpec spec = model->spec();
  const KvStore kv_store = model->kv_store();
  AERIE_RETURN_IF_ERROR(CheckKvFits(options.engine, kv_store));
  options.LimitRowsToMessage(spec.wiring.size() * int64_t{spec.target_hidden_size});
  LogSettings("server", options.settings);
  LogSettings("drafter", spec.settings);

  PrometheusObserver observer(MetricsOf(spec, kv_store, options));
  std::unique_ptr<Exporter> exporter;
  if (options.metrics.enabled()) {
    AERIE_ASSIGN_OR_RETURN(exporter, StartExporter(options.metrics.listen, observer.metrics()));
    AERIE_LOG(info, "metrics at http://{}/metrics", exporter->address());
  }

  DraftEngine engine(options.engine, std::move(model), &observer);
  service.Serve({.engine = &engine,
                 .info = BuildServerInfo(
                     spec, kv_store, options.engine, options.grpc.max_message_bytes,
                     {kVersion, kRevision, kCompiler, LibTorchVersion()}, options.settings),
                 .round_observer = &observer,
                 .rpc_observer = &observer});
  server->SetServing(true);
  absl::Status written;
  if (!options.process.port_file.empty()) {
    written = WritePortFile(options.process.port_file, server->addresses(),
                            exporter == nullptr ? "" : exporter->address());
  }
  if (written.ok()) {
    AERIE_LOG(info, "ready: drafter {} version {}", spec.name, spec.version);
    stop->Wait();
  }
  const Watchdog watchdog(options.process.drain_timeout);
  const absl::Status drained =
      Drain(options.process.drain_timeout, server.get(), &service, &engine);
  return written.ok() ? drained : written;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Invocation> invocation =
      ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc), ProcessEnvironment());
  absl::Status usage = invocation.status();
  if (usage.ok() && invocation->print) {
    std::fputs(invocation->print->c_str(), stdout);
    return 0;
  }
  if (usage.ok()) usage = SetUpLog(invocation->options.process.log_level);
  if (!usage.ok()) {
    std::fprintf(stderr, "aerie-server: %s\n", std::string(usage.message()).c_str());
    return 2;
  }
  SendGrpcLogToOurs();
  // Lives as long as the process, as its thread does.
  static StopSignal* const stop = new StopSignal();
  const absl::Status status = Serve(invocation->options, stop);
  if (status.ok()) return 0;
  AERIE_LOG(error, "{}", std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) { return aerie::Main(argc, argv); }
