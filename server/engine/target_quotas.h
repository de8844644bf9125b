// What the sessions of one target may have together, where one drafter serves several.
//
// A target is the name that workers give theirs (Manifest.target_id), so quotas keep honest targets
// from each other's way; what a client may have at most is the business of its own limits. The
// quotas are the server's: all of its engines share one TargetQuotas.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "server/engine/round_observer.h"
#include "server/engine/row_bucket.h"

namespace aerie {

struct TargetQuota {
  int32_t sessions = 0;         // open at once; 0: not limited
  int32_t rows_per_second = 0;  // 0: not limited; those of one second may come at once
  friend bool operator==(const TargetQuota&, const TargetQuota&) = default;
};

// By target. kOtherTargets: all that are not named, together; without it those have no quota.
using TargetQuotaMap = std::map<std::string, TargetQuota>;
inline constexpr char kOtherTargets[] = "*";

// INVALID_ARGUMENT that names flag and value.
absl::Status ValidateTargetQuotas(const TargetQuotaMap& quotas);

// One target's. Any thread.
class TargetShare {
 public:
  TargetShare(std::string target, const TargetQuota& quota);

  // One session more. RESOURCE_EXHAUSTED, reason TARGET_LIMIT: it has its maximum.
  absl::Status AddSession();
  void RemoveSession();
  // RESOURCE_EXHAUSTED, reason TARGET_LIMIT: its calls have brought more than it may already.
  absl::Status TakeRows(int64_t rows, absl::Time now);

  TargetUsage usage() const;

 private:
  const TargetQuota quota_;
  mutable Mutex mutex_;
  TargetUsage usage_ ABSL_GUARDED_BY(mutex_);
  std::optional<RowBucket> bucket_ ABSL_GUARDED_BY(mutex_);  // none: rows are not limited
};

// Any thread.
class TargetQuotas {
 public:
  // `quotas` must be valid.
  explicit TargetQuotas(const TargetQuotaMap& quotas);

  // Whose quota a target's sessions count for; null: nobody's. Lives as long as this.
  TargetShare* Find(const std::string& target);
  // Of every quota, by name.
  std::vector<TargetUsage> Usage() const;

 private:
  std::map<std::string, std::unique_ptr<TargetShare>> shares_;
};

}  // namespace aerie
