#include "server/engine/session_table.h"

#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/check.h"

namespace aerie {
namespace {

constexpr size_t kExpiredRemembered = 1024;

}  // namespace

std::string NewSessionId() {
  // Straight from the system's entropy: a seeded generator would give its next ids away.
  // Kept, since finding the source takes longer than drawing from it.
  thread_local std::random_device entropy;
  return absl::StrFormat("%08x%08x%08x%08x", entropy(), entropy(), entropy(), entropy());
}

SessionEntry* SessionTable::Add(Session::Setup setup, Client* client, absl::Time now) {
  std::string id = setup.id;
  auto [place, added] =
      entries_.emplace(std::move(id), std::make_unique<SessionEntry>(std::move(setup), client));
  AERIE_CHECK(added) << "two sessions of one id";
  SessionEntry* entry = place->second.get();
  MarkIdle(entry, now);
  return entry;
}

SessionEntry* SessionTable::Find(const std::string& id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
}

void SessionTable::Erase(SessionEntry* entry) {
  MarkBusy(entry);
  AERIE_CHECK(!entry->active.has_value() && entry->waiting.empty());
  // A copy: the id dies with the entry while erase() still reads it.
  const std::string id = entry->session.id();
  AERIE_CHECK(entries_.erase(id) == 1);
}

void SessionTable::MarkBusy(SessionEntry* entry) {
  if (!entry->idle) return;
  idle_.erase(entry->idle_place);
  entry->idle = false;
}

void SessionTable::MarkIdle(SessionEntry* entry, absl::Time now) {
  MarkBusy(entry);
  entry->idle_since = now;
  entry->idle_place = idle_.insert(idle_.end(), entry);
  entry->idle = true;
}

SessionEntry* SessionTable::FindExpired(absl::Time now) {
  if (idle_.empty() || NextExpiry() > now) return nullptr;
  return idle_.front();
}

absl::Time SessionTable::NextExpiry() const {
  return idle_.empty() ? absl::InfiniteFuture() : idle_.front()->idle_since + lease_;
}

void SessionTable::RememberExpired(const std::string& id) {
  if (!expired_.insert(id).second) return;
  expired_order_.push_back(id);
  if (expired_order_.size() <= kExpiredRemembered) return;
  expired_.erase(expired_order_.front());
  expired_order_.pop_front();
}

std::vector<SessionEntry*> SessionTable::All() {
  std::vector<SessionEntry*> all;
  all.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) all.push_back(entry.get());
  return all;
}

}  // namespace aerie
