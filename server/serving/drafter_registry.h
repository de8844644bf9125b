// The drafters of a server: which are loaded, loading more, swapping versions, letting old ones go.
//
// Loads run one after the other on a thread of their own, beside what serves. A load that fails
// changes nothing; one for which there is not enough memory fails before it takes any. A version
// that was replaced or unloaded finishes its sessions; Tick() frees it when the last has ended and
// no call holds it any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/wiring_report.h"
#include "server/config/options.h"
#include "server/metrics/server_metrics.h"
#include "server/serving/loaded_drafter.h"
#include "server/transport/drafter_directory.h"

namespace aerie {

enum class DrafterState { kLoading, kServing, kDraining };

struct DrafterStatus {
  std::string name;
  DrafterState state = DrafterState::kLoading;
  absl::Time since;      // of the state
  int64_t sessions = 0;  // that are open
  DrafterOptions source;
  ServedDrafterPtr served;  // null while it is loading
};

struct Reloaded {
  DrafterStatus drafter;
  bool unchanged = false;  // it is what is served already: nothing was replaced
};

class DrafterRegistry {
 public:
  using Done = std::function<void(absl::StatusOr<DrafterStatus>)>;
  using ReloadDone = std::function<void(absl::StatusOr<Reloaded>)>;

  // `metrics`, which may be null, and what `around` names outlive it.
  DrafterRegistry(Surroundings around, ModelLoader loader, ServerMetrics* metrics);
  // Calls must have ended. Loads that wait are refused; one under way is waited for.
  ~DrafterRegistry();
  DrafterRegistry(const DrafterRegistry&) = delete;
  DrafterRegistry& operator=(const DrafterRegistry&) = delete;

  // The one that the server starts with; before anything else. The first one loaded is the one that
  // is recorded, if any is.
  absl::Status LoadAtStart(const DrafterOptions& source);

  // Any thread. `done` is called on the thread of the loads, or, once Drain() has begun, at once.
  //
  // Codes as of AdminService in admin.proto.
  void Load(DrafterOptions source, Done done);
  void Reload(std::string name, std::optional<DrafterOptions> source, ReloadDone done);
  void Unload(std::string name, Done done);
  // Each from where it came; what comes of it is in log and metrics.
  void ReloadAll();

  // Any thread. In the order in which they were loaded; of one that is being loaded, last.
  std::vector<DrafterStatus> List() const;
  std::vector<WiringReport> WiringReports() const;
  const DrafterDirectory& directory() const { return directory_; }

  // Call it now and then, from one thread, not an engine's.
  void Tick(absl::Time now);

  // From now on nothing is loaded. As DraftEngine::Drain(), for all of them.
  bool Drain(absl::Time deadline);
  // After Drain(): returns once a load that is under way has come to its end, which changes nothing
  // any more.
  void AwaitLoads();

 private:
  struct Entry {
    std::shared_ptr<LoadedDrafter> drafter;
    DrafterOptions source;
    DrafterState state = DrafterState::kServing;
    absl::Time since;
  };

  // On the thread of the loads.
  void Run();
  absl::StatusOr<DrafterStatus> LoadNow(const DrafterOptions& source);
  absl::StatusOr<Reloaded> ReloadNow(const std::string& name,
                                     const std::optional<DrafterOptions>& source);
  absl::StatusOr<DrafterStatus> UnloadNow(const std::string& name);
  // Reads it and starts its engine; null when it is what `current` is already. `beside`: others
  // serve, whose sessions must not pay for it.
  absl::StatusOr<std::shared_ptr<LoadedDrafter>> Make(const DrafterOptions& source,
                                                      const LoadedDrafter* current, bool beside);
  bool IsServing(const std::string& name);
  void TellLoaded(const std::string& name, const absl::Status& status);

  void Post(std::function<void(const absl::Status&)> work);
  DrafterStatus StatusOf(const Entry& entry) const;
  // The one of the name that takes new sessions; null: there is none.
  Entry* Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // UNAVAILABLE: it comes too late, since the server drains.
  absl::StatusOr<DrafterStatus> Take(const DrafterOptions& source,
                                     std::shared_ptr<LoadedDrafter> drafter);
  std::string NextTag() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NameInLog();

  const Surroundings around_;
  const ModelLoader loader_;
  ServerMetrics* const metrics_;
  DrafterDirectory directory_;

  mutable Mutex mutex_;
  Condition changed_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<LoadedDrafter>> leaving_ ABSL_GUARDED_BY(mutex_);  // found by nobody
  std::optional<Entry> loading_ ABSL_GUARDED_BY(mutex_);
  // Called with OK to do its work, or with why not.
  std::deque<std::function<void(const absl::Status&)>> work_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t tags_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // last: everything above must be there when it starts
};

}  // namespace aerie
