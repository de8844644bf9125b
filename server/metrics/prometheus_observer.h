// Counts what engine and transport tell, under the names that dashboards read.
//
// The counters of the acceptance ratios hold JUDGED proposals only: a proposal whose outcome never
// came is in aerie_drafts_unreported_total and in no ratio. Proposals made, judged or not, are
// aerie_draft_length_tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/round_observer.h"
#include "server/guard/wiring_observer.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace aerie {

// The labels that every metric of a drafter carries. Fixed while it is loaded: nothing that a
// client sends may become a label.
struct MetricLabels {
  std::string drafter;
  std::string version;  // digest of the drafter's weights
  std::string target;
};

// Labels of aerie_drafter_info, beside the common ones.
struct DrafterFacts {
  std::string wiring;  // Wiring::ToString()
  std::string device;  // "cpu"
  std::string dtype;   // of the computation: "float32"
  int32_t draft_vocab_size = 0;
  int32_t hidden_size = 0;
};

// What is known of the live guard when the server starts.
struct WiringFacts {
  std::string mode = "off";  // --wiring-guard
  int32_t captures = 0;      // of the wiring; 0: the guard is off, and has no series but its info
  std::vector<double> expected_rms;  // by capture; empty: there is no profile
  std::optional<double> expected_accept_length;
};

struct PrometheusOptions {
  MetricLabels labels;
  DrafterFacts drafter;
  WiringFacts wiring;
  int32_t max_k = 16;                  // of the engine, >= 1: how many positions there are
  int32_t max_sessions_per_pass = 64;  // of the engine, >= 1
  int64_t kv_pages = 0;                // of the draft KV store; all are free at the start
  int64_t kv_page_bytes = 0;
};

// Thread rules are those of the interfaces. Never blocks: a scrape shares no lock with a caller.
class PrometheusObserver final : public RoundObserver, public WiringObserver {
 public:
  // Makes every series, all at zero, so that the first event is seen by rate().
  explicit PrometheusObserver(const PrometheusOptions& options);
  ~PrometheusObserver() override;
  PrometheusObserver(const PrometheusObserver&) = delete;
  PrometheusObserver& operator=(const PrometheusObserver&) = delete;

  // For the MetricPage. May outlive the observer. Any thread.
  std::shared_ptr<prometheus::Collectable> metrics() const;

  void OnRound(const RoundRecord& record) override;
  void OnPass(const PassRecord& record) override;
  void OnSessionOpened() override;
  void OnSessionEnded(const SessionRecord& record) override;
  void OnRejected(RejectReason reason) override;
  void OnReplyEncoded(absl::Duration copy_out) override;
  void OnLoad(int32_t queued, int32_t in_flight) override;
  void OnKvUsage(const KvUsage& usage) override;
  void OnEvicted(int64_t rows) override;

  // Only of a guard that is not off.
  void OnVote(VoteOutcome outcome) override;
  void OnState(WiringState state) override;
  void OnSummary(const WiringSummary& summary) override;
  void OnRowSizes(absl::Span<const double> rms) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace aerie
