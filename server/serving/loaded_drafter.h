// One loaded version of a drafter with all that goes with it: engine, metrics, request log, guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wiring_report.h"
#include "server/config/options.h"
#include "server/config/row_watchers.h"
#include "server/config/serving_gate.h"
#include "server/engine/draft_engine.h"
#include "server/engine/round_observer_list.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/prometheus_observer.h"
#include "server/request_log/request_log.h"
#include "server/serving/memory_room.h"
#include "server/transport/served_drafter.h"

namespace aerie {

// What was read from a checkpoint.
struct LoadedModel {
  std::unique_ptr<DraftModel> model;
  std::string guard_profile;  // of wiring.json; empty: there is none
};

// Reads one; takes its time. The first argument says which, the second how to compute; the third is
// asked once what it takes is known, and ends the load unless it says OK.
using ModelLoader = std::function<absl::StatusOr<LoadedModel>(const DrafterOptions&, const Options&,
                                                              const MemoryCheck&)>;

// What all drafters of a server share. Everything outlives them.
struct Surroundings {
  const Options* options = nullptr;
  ServingGate* gate = nullptr;
  MetricPage* page = nullptr;
  RequestLog* request_log = nullptr;  // null: there is none
  // What there is now, before a drafter is loaded beside others that serve; empty: nobody looks.
  std::function<MemoryRoom()> memory_room = nullptr;
};

class LoadedDrafter {
 public:
  // Starts its engine. `session_tag` as in ServedDrafter; `record`: whether --record is for it.
  // INVALID_ARGUMENT: the limits do not fit it, or its guard profile is none.
  static absl::StatusOr<std::shared_ptr<LoadedDrafter>> Start(const DrafterOptions& source,
                                                              LoadedModel loaded,
                                                              const Surroundings& around,
                                                              std::string session_tag, bool record);
  // Its sessions must have ended, or end with it. Not on its engine's thread.
  ~LoadedDrafter();
  LoadedDrafter(const LoadedDrafter&) = delete;
  LoadedDrafter& operator=(const LoadedDrafter&) = delete;

  const DrafterSpec& spec() const { return engine_->spec(); }
  // Whether `other` would draft, and be looked at, in the same way.
  bool IsSameAs(const DrafterSpec& other, const std::string& guard_profile) const;
  // For calls; whoever holds it keeps `drafter` alive.
  static ServedDrafterPtr Served(const std::shared_ptr<LoadedDrafter>& drafter) {
    return {drafter, &drafter->served_};
  }

  // Any thread.
  int64_t sessions() const { return counter_.sessions(); }
  std::vector<WiringReport> WiringReports() const { return watchers_->Reports(); }
  // As DraftEngine::Drain().
  bool Drain(absl::Time deadline) { return engine_->Drain(deadline); }
  // Call it now and then.
  void Tick(absl::Time now) { watchers_->Tick(now); }

 private:
  // How many sessions are open.
  class SessionCounter final : public RoundObserver {
   public:
    int64_t sessions() const { return sessions_.load(std::memory_order_relaxed); }

    void OnSessionOpened() override { ++sessions_; }
    void OnSessionEnded(const SessionRecord&) override { --sessions_; }
    void OnRound(const RoundRecord&) override {}
    void OnPass(const PassRecord&) override {}
    void OnRejected(RejectReason) override {}
    void OnReplyEncoded(absl::Duration) override {}
    void OnLoad(int32_t, int32_t) override {}
    void OnKvUsage(const KvUsage&) override {}
    void OnEvicted(int64_t) override {}

   private:
    std::atomic<int64_t> sessions_{0};
  };

  LoadedDrafter(const PrometheusOptions& metrics, std::string guard_profile,
                const Surroundings& around);

  const std::string guard_profile_;
  MetricPage* const page_;
  const std::string page_key_;
  // From here on in the order in which one needs the other.
  PrometheusObserver metrics_;
  SessionCounter counter_;
  std::unique_ptr<RoundObserver> request_log_;  // null: there is none
  std::unique_ptr<RoundObserverList> observers_;
  std::unique_ptr<RowWatchers> watchers_;
  std::unique_ptr<DraftEngine> engine_;
  ServedDrafter served_;
};

}  // namespace aerie
