#include "server/engine/target_quotas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/engine/refusals.h"

namespace aerie {

absl::Status ValidateTargetQuotas(const TargetQuotaMap& quotas) {
  for (const auto& [target, quota] : quotas) {
    if (target.empty()) {
      return absl::InvalidArgumentError(
          "--target-quota names no target; expected NAME=SESSIONS[:ROWS_PER_SECOND]; write the "
          "target_id that its workers send, or * for all targets without a quota of their own");
    }
    if (quota.sessions >= 0 && quota.rows_per_second >= 0 &&
        (quota.sessions > 0 || quota.rows_per_second > 0)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--target-quota gives \"", target, "\" ", quota.sessions, " sessions and ",
        quota.rows_per_second,
        " rows a second; expected 0 or more of each, 0 meaning no limit, and one of them limited; "
        "give a limit, or leave the target out"));
  }
  return absl::OkStatus();
}

TargetShare::TargetShare(std::string target, const TargetQuota& quota) : quota_(quota) {
  usage_.quota = std::move(target);
  if (quota.rows_per_second > 0) bucket_.emplace(quota.rows_per_second, quota.rows_per_second);
}

absl::Status TargetShare::AddSession() {
  const MutexLock lock(&mutex_);
  if (quota_.sessions > 0 && usage_.sessions >= quota_.sessions) {
    ++usage_.refused_sessions;
    return TargetSessionsError(usage_.quota, quota_.sessions);
  }
  ++usage_.sessions;
  return absl::OkStatus();
}

void TargetShare::RemoveSession() {
  const MutexLock lock(&mutex_);
  AERIE_CHECK(usage_.sessions > 0) << "target " << usage_.quota << " has no session";
  --usage_.sessions;
}

absl::Status TargetShare::TakeRows(int64_t rows, absl::Time now) {
  const MutexLock lock(&mutex_);
  if (bucket_.has_value()) {
    const absl::Duration wait = bucket_->Take(rows, now);
    if (wait > absl::ZeroDuration()) {
      ++usage_.refused_calls;
      return TargetRowsError(usage_.quota, quota_.rows_per_second, wait);
    }
  }
  usage_.rows += rows;
  return absl::OkStatus();
}

TargetUsage TargetShare::usage() const {
  const MutexLock lock(&mutex_);
  return usage_;
}

TargetQuotas::TargetQuotas(const TargetQuotaMap& quotas) {
  for (const auto& [target, quota] : quotas) {
    shares_.emplace(target, std::make_unique<TargetShare>(target, quota));
  }
}

TargetShare* TargetQuotas::Find(const std::string& target) {
  auto found = shares_.find(target);
  if (found == shares_.end()) found = shares_.find(kOtherTargets);
  return found == shares_.end() ? nullptr : found->second.get();
}

std::vector<TargetUsage> TargetQuotas::Usage() const {
  std::vector<TargetUsage> out;
  for (const auto& [target, share] : shares_) out.push_back(share->usage());
  return out;
}

}  // namespace aerie
