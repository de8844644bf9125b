// The sessions that are open: finding one by its id, and which of them have been idle longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "server/engine/client_book.h"
#include "server/engine/draft_call.h"
#include "server/engine/row_observer.h"
#include "server/engine/session.h"

namespace aerie {

struct WaitingDraft {
  uint64_t arrival_number = 0;
  DraftCall call;
  DraftDone done;
};

struct WaitingClose {
  std::vector<int32_t> final_tokens;
  SessionEnd end = SessionEnd::kClosed;
  CloseDone done;
};

// A session and its calls. At most one is active; the others wait in order of arrival.
struct SessionEntry {
  SessionEntry(Session::Setup setup, Client* client_of)
      : session(std::move(setup)), client(client_of) {}

  Session session;
  std::unique_ptr<RowWatch> watch;  // null: nobody watches
  Client* const client;
  std::deque<std::variant<WaitingDraft, WaitingClose>> waiting;
  std::optional<uint64_t> active;  // the arrival number of the draft call that is being served

 private:
  friend class SessionTable;
  absl::Time idle_since;
  std::list<SessionEntry*>::iterator idle_place;
  bool idle = false;
};

// A fresh 128-bit random number in hexadecimal: whoever does not hold the id cannot guess it.
std::string NewSessionId();

// Engine thread only.
class SessionTable {
 public:
  explicit SessionTable(absl::Duration lease) : lease_(lease) {}

  // Takes a session that is idle from `now` on. Its id must be new; `client` outlives it.
  SessionEntry* Add(Session::Setup setup, Client* client, absl::Time now);
  // nullptr: there is none of this id.
  SessionEntry* Find(const std::string& id);
  void Erase(SessionEntry* entry);

  // A session with an active or waiting call is busy: its lease does not run.
  void MarkBusy(SessionEntry* entry);
  void MarkIdle(SessionEntry* entry, absl::Time now);

  // The session whose lease ran out first, by `now`; nullptr: none did.
  SessionEntry* FindExpired(absl::Time now);
  // When the next lease runs out; InfiniteFuture when every session is busy.
  absl::Time NextExpiry() const;

  // So that a caller who comes too late learns why: whether `id` is among the last ones that
  // expired.
  void RememberExpired(const std::string& id);
  bool HasExpired(const std::string& id) const { return expired_.count(id) != 0; }

  size_t size() const { return entries_.size(); }
  // In no particular order.
  std::vector<SessionEntry*> All();
  // Sessions without an active or waiting call, longest idle first.
  const std::list<SessionEntry*>& idle() const { return idle_; }
  bool IsIdle(const SessionEntry& entry) const { return entry.idle; }

 private:
  const absl::Duration lease_;
  std::unordered_map<std::string, std::unique_ptr<SessionEntry>> entries_;
  // Longest idle first. All leases are equally long, so this is also the order of their ends.
  std::list<SessionEntry*> idle_;
  std::unordered_set<std::string> expired_;
  std::deque<std::string> expired_order_;
};

}  // namespace aerie
