// The one place where what happened is told. The engine tells it; server/metrics counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/acceptance_record.h"

namespace aerie {

// The outcome of one proposal: what the target kept of it.
struct Judgement {
  int32_t proposed = 0;                    // nodes
  int32_t depth = 0;                       // levels: `proposed` of a chain
  int32_t accepted = 0;                    // the length of the path that was kept; 0..depth
  std::optional<int32_t> worker_accepted;  // what the worker reported, when it did
};

// Why a proposal's outcome never came.
enum class UnreportedReason { kClosed, kLease, kRollback, kStreamClosed, kShutdown };
// Why a call that was served got fewer tokens than the session's usual draft, or none.
enum class SkipReason { kNotAsked, kContextLimit, kDeadline, kNotWorthwhile };
enum class SessionEnd { kClosed, kLease, kStreamClosed, kShutdown };
enum class RejectReason {
  kQueueFull,
  kDeadline,
  kLease,
  kWiring,
  kShape,
  kQuota,  // sessions or waiting calls of one client
  kKvMemory,
  kClientRows,   // of one client a second
  kClientBytes,  // of one client in unanswered requests
  kTargetQuota,  // sessions, or rows a second, of one target
};

// One draft call from arrival to reply. Filled on the engine thread, handed over once, at its end
// and before the reply, so that whoever reads the counters after a reply finds it counted. A call
// that was refused at the door (queue full, draining) has none; a repeated call has an empty one.
struct RoundRecord {
  absl::StatusCode outcome = absl::StatusCode::kOk;
  absl::Duration copy_in;              // spent on reading and checking the request
  absl::Duration queue_wait;           // from there until its first pass began
  absl::Duration extend_time;          // sum over the passes that took its extend rows
  absl::Duration step_time;            // sum over the passes that took its draft rows
  absl::Duration total;                // arrival to answer, which is still to be encoded
  int64_t rows = 0;                    // extend rows committed
  int64_t bytes = 0;                   // of their hidden states, as they travelled
  bool shared_memory = false;          // outside the message
  int32_t proposed = 0;                // nodes of this call's tree
  int64_t committed_tokens = 0;        // new tokens of a sequence that has been drafted for before
  std::optional<Judgement> judgement;  // of the *previous* proposal
  std::optional<UnreportedReason> unreported;  // the previous proposal was lost by this call
  std::optional<SkipReason> skipped;
  int32_t depth = 0;  // levels of this call's tree
  // What the worker told of its target's last verification.
  std::optional<absl::Duration> verify_time;
  // Of a session with adaptive_k: what was chosen, 0 included.
  std::optional<int32_t> chosen_k;
};

// The pages of the draft KV store.
struct KvUsage {
  int64_t pages_total = 0;
  int64_t pages_used = 0;
  int64_t pages_shared = 0;  // of the used ones, by more than one session
  friend bool operator==(const KvUsage&, const KvUsage&) = default;
};

// One pass of the model.
struct PassRecord {
  int32_t sessions = 0;
  int64_t rows = 0;
  absl::Duration duration;
};

// What came of the quota of one target, or of all that have none of their own, so far.
struct TargetUsage {
  std::string quota;             // its name
  int64_t sessions = 0;          // open now
  int64_t rows = 0;              // of calls that were taken
  int64_t refused_sessions = 0;  // calls without a session included
  int64_t refused_calls = 0;     // for their rows
};

// Whose session it was and what it asked for.
struct SessionFacts {
  std::string id;
  std::string client;     // empty: it gave no name
  std::string target_id;  // what the worker calls its target
  std::string
      traceparent;  // of the request that it served; empty: none was given, or it was unreadable
  absl::Time opened;
  bool tree = false, sampled = false, adaptive_k = false;
};

// What the draft calls of one session took, those answered with an error included.
struct SessionCost {
  int64_t calls = 0;
  int64_t failed_calls = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  absl::Duration copy_in, queue, extend, step, total;  // as in RoundRecord
};

// One session from open to end. A stateless call is no session and its proposal belongs to no
// ratio: it can never be judged, so it is not unreported either.
struct SessionRecord {
  SessionEnd end = SessionEnd::kClosed;
  AcceptanceRecord acceptance;
  // From the commit of the call that brought the first proposal to the last commit; committed
  // tokens over it are the request's tok/s.
  absl::Duration active;
  int64_t final_tokens = 0;            // committed by the closing call itself
  std::optional<Judgement> judgement;  // of the last proposal, when the closing call brought tokens
  std::optional<UnreportedReason> unreported;
  absl::Time ended;
  SessionFacts facts;
  SessionCost cost;
};

// Called on the engine thread, except OnRejected, which any thread may call. Implementations must
// not block.
class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  virtual void OnRound(const RoundRecord& record) = 0;
  virtual void OnPass(const PassRecord& record) = 0;
  virtual void OnSessionOpened() = 0;
  virtual void OnSessionEnded(const SessionRecord& record) = 0;
  virtual void OnRejected(RejectReason reason) = 0;
  // What encoding the answer of a draft call took: between its OnRound and its reply.
  virtual void OnReplyEncoded(absl::Duration copy_out) = 0;
  // Calls that wait for their first pass, and calls in passes. Told whenever either changes.
  virtual void OnLoad(int32_t queued, int32_t in_flight) = 0;
  // Told whenever it changed, at most once a pass.
  virtual void OnKvUsage(const KvUsage& usage) = 0;
  // A session lost `rows` rows of draft KV to make room for others; it goes on when they are sent
  // again.
  virtual void OnEvicted(int64_t rows) = 0;
};

}  // namespace aerie
