#include "server/metrics/server_metrics.h"

#include "server/metrics/metric_registry.h"
#include "server/metrics/rpc_metrics.h"

namespace aerie {

class ServerMetrics::Impl {
 public:
  struct Loads {
    prometheus::Counter* ok;
    prometheus::Counter* failed;
    prometheus::Gauge* last;
    prometheus::Gauge* last_ok;
  };

  explicit Impl(const BuildFacts& build)
      : rpcs(*registry),
        records_written(registry->AddCounter(kRequestLogRecords, {})),
        records_lost(registry->AddCounters(kRequestLogDropped, {}), "reason", kRecordLosses),
        reloads(registry->AddCounters(kDrafterReloads, {})),
        last_reload(registry->AddGauges(kDrafterLastReload, {})),
        last_reload_ok(registry->AddGauges(kDrafterLastReloadOk, {})) {
    unknown_ok = &reloads.Add({{"drafter", ""}, {"result", "ok"}});
    unknown_failed = &reloads.Add({{"drafter", ""}, {"result", "failed"}});
    registry
        ->AddGauge(kBuildInfo, {{"version", build.version},
                                {"revision", build.revision},
                                {"compiler", build.compiler},
                                {"libtorch", build.libtorch}})
        .Set(1);
  }

  // Names come from who runs the server, so there are few.
  void Know(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (loads.count(name) > 0) return;
    const prometheus::Labels labels = {{"drafter", name}};
    Loads made = {.ok = &reloads.Add({{"drafter", name}, {"result", "ok"}}),
                  .failed = &reloads.Add({{"drafter", name}, {"result", "failed"}}),
                  .last = &last_reload.Add(labels),
                  .last_ok = &last_reload_ok.Add(labels)};
    made.last_ok->Set(1);
    loads.emplace(name, made);
  }

  const std::shared_ptr<MetricRegistry> registry = std::make_shared<MetricRegistry>();
  RpcMetrics rpcs;
  prometheus::Counter& records_written;
  CounterTable<RecordLoss, kRecordLosses.size()> records_lost;
  MetricRegistry::CounterFamily& reloads;
  MetricRegistry::GaugeFamily& last_reload;
  MetricRegistry::GaugeFamily& last_reload_ok;
  prometheus::Counter* unknown_ok;
  prometheus::Counter* unknown_failed;
  Mutex mutex;
  std::map<std::string, Loads> loads ABSL_GUARDED_BY(mutex);
};

ServerMetrics::ServerMetrics(const BuildFacts& build) : impl_(std::make_unique<Impl>(build)) {}
ServerMetrics::~ServerMetrics() = default;

std::shared_ptr<prometheus::Collectable> ServerMetrics::metrics() const { return impl_->registry; }

void ServerMetrics::OnStarted(const RpcName& name) { impl_->rpcs.OnStarted(name); }
void ServerMetrics::OnMessageReceived(const RpcName& name, int64_t bytes) {
  impl_->rpcs.OnMessageReceived(name, bytes);
}
void ServerMetrics::OnMessageSent(const RpcName& name, int64_t bytes) {
  impl_->rpcs.OnMessageSent(name, bytes);
}
void ServerMetrics::OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration) {
  impl_->rpcs.OnHandled(name, code, duration);
}
void ServerMetrics::OnAnswered(CallKind call, RpcType via, absl::StatusCode code) {
  impl_->rpcs.OnAnswered(call, via, code);
}
void ServerMetrics::OnTraceIgnored() { impl_->rpcs.OnTraceIgnored(); }

void ServerMetrics::OnRecordWritten() { impl_->records_written.Increment(); }
void ServerMetrics::OnRecordLost(RecordLoss loss) { impl_->records_lost.Increment(loss); }

void ServerMetrics::OnDrafterKnown(const std::string& name) {
  const MutexLock lock(&impl_->mutex);
  impl_->Know(name);
}

void ServerMetrics::OnDrafterGone(const std::string& name) {
  const MutexLock lock(&impl_->mutex);
  const auto found = impl_->loads.find(name);
  if (found == impl_->loads.end()) return;
  impl_->last_reload.Remove(found->second.last);
  impl_->last_reload_ok.Remove(found->second.last_ok);
  impl_->loads.erase(found);
}

void ServerMetrics::OnDrafterLoaded(const std::string& name, bool ok, absl::Time now) {
  const MutexLock lock(&impl_->mutex);
  const auto found = impl_->loads.find(name);
  if (found == impl_->loads.end()) {
    (ok ? impl_->unknown_ok : impl_->unknown_failed)->Increment();
    return;
  }
  const Impl::Loads& loads = found->second;
  (ok ? loads.ok : loads.failed)->Increment();
  loads.last->Set(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  loads.last_ok->Set(ok ? 1 : 0);
}

}  // namespace aerie
