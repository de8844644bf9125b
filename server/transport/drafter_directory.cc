#include "server/transport/drafter_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "server/engine/refusals.h"

namespace aerie {
namespace {

absl::Status NoSuchDrafter(const std::string& name, const std::vector<ServedDrafterPtr>& current) {
  const std::string names = absl::StrJoin(
      current, ", ",
      [](std::string* out, const ServedDrafterPtr& drafter) { out->append(drafter->name); });
  ErrorDetail detail;
  detail.reason = kReasonManifestMismatch;
  detail.mismatches.push_back({.field = "drafter",
                               .expected = absl::StrCat("one of: ", names),
                               .received = name.empty() ? "none named" : name});
  return WithDetail(
      absl::FailedPreconditionError(
          absl::StrCat(name.empty() ? "the manifest names no drafter and there are several"
                                    : absl::StrCat("the manifest names the drafter \"", name, "\""),
                       "; expected one of: ", names, "; correct the worker's drafter")),
      detail);
}

}  // namespace

void DrafterDirectory::Serve(ServedDrafterPtr drafter) {
  const MutexLock lock(&mutex_);
  AERIE_CHECK(drafter->session_tag.size() == kSessionTagLength ||
              (drafter->session_tag.empty() && by_tag_.empty()))
      << "tag \"" << drafter->session_tag << "\"";
  AERIE_CHECK(by_tag_.emplace(drafter->session_tag, drafter).second) << "two of one tag";
  for (ServedDrafterPtr& known : current_) {
    if (known->name != drafter->name) continue;
    known = std::move(drafter);
    return;
  }
  current_.push_back(std::move(drafter));
}

void DrafterDirectory::Retire(const std::string& name) {
  const MutexLock lock(&mutex_);
  std::erase_if(current_,
                [&name](const ServedDrafterPtr& drafter) { return drafter->name == name; });
}

void DrafterDirectory::Remove(const ServedDrafter* drafter) {
  const MutexLock lock(&mutex_);
  const auto is_it = [drafter](const ServedDrafterPtr& known) { return known.get() == drafter; };
  std::erase_if(current_, is_it);
  std::erase_if(by_tag_, [&is_it](const auto& entry) { return is_it(entry.second); });
}

absl::StatusOr<ServedDrafterPtr> DrafterDirectory::ForManifest(const std::string& name) const {
  const MutexLock lock(&mutex_);
  // A manifest need not name the only one there is; a name is then compared as all of it is.
  if (current_.size() == 1 && (name.empty() || by_tag_.size() == 1)) return current_.front();
  for (const ServedDrafterPtr& drafter : current_) {
    if (drafter->name == name) return drafter;
  }
  return NoSuchDrafter(name, current_);
}

absl::StatusOr<ServedDrafterPtr> DrafterDirectory::ForSession(const std::string& session_id) const {
  const MutexLock lock(&mutex_);
  if (by_tag_.size() == 1) return by_tag_.begin()->second;
  const auto found = by_tag_.find(session_id.substr(0, kSessionTagLength));
  if (found != by_tag_.end()) return found->second;
  return SessionUnknownError(session_id, /*expired=*/false, absl::ZeroDuration());
}

std::vector<ServedDrafterPtr> DrafterDirectory::Current() const {
  const MutexLock lock(&mutex_);
  return current_;
}

ServedDrafterPtr DrafterDirectory::First() const {
  const MutexLock lock(&mutex_);
  AERIE_CHECK(!by_tag_.empty()) << "no drafter";
  return current_.empty() ? by_tag_.begin()->second : current_.front();
}

}  // namespace aerie
