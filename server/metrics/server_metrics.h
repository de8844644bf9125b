// The metrics of the server itself, whichever drafters it holds: its build, calls, the request log,
// and what came of loading drafters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "server/request_log/request_log_observer.h"
#include "server/transport/rpc_observer.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace aerie {

// Labels of aerie_build_info.
struct BuildFacts {
  std::string version, revision, compiler, libtorch;
};

// Any thread. Never blocks on a scrape.
class ServerMetrics final : public RpcObserver, public RequestLogObserver {
 public:
  // Makes every series, all at zero, so that the first event is seen by rate().
  explicit ServerMetrics(const BuildFacts& build);
  ~ServerMetrics() override;
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // For the MetricPage. May outlive this.
  std::shared_ptr<prometheus::Collectable> metrics() const;

  // `name` must be a method of aerie.v1.DraftService or AdminService.
  void OnStarted(const RpcName& name) override;
  void OnMessageReceived(const RpcName& name, int64_t bytes) override;
  void OnMessageSent(const RpcName& name, int64_t bytes) override;
  void OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration) override;
  void OnAnswered(CallKind call, RpcType via, absl::StatusCode code) override;
  void OnTraceIgnored() override;

  void OnRecordWritten() override;
  void OnRecordLost(RecordLoss loss) override;

  // A drafter of this name is there: its loads have series from now on.
  void OnDrafterKnown(const std::string& name);
  // It takes no new sessions any more: what came of its last load is of no more interest.
  void OnDrafterGone(const std::string& name);
  // One was loaded, or not, after the start. Those that never were there are counted without a
  // name: a slip of the keyboard is no drafter.
  void OnDrafterLoaded(const std::string& name, bool ok, absl::Time now);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace aerie
