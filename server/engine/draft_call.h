// What goes into the engine and what comes out of it: values only.
//
// Rows, as on the wire: row i pairs the aux hidden state of position i with the token of position i
// + 1. A session's *length* is its number of rows, so tokens[i] of a call is the token of position
// base_length + i + 1.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/acceptance_record.h"
#include "common/adaptive_k.h"
#include "common/draft_tree.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"
#include "common/session_options.h"
#include "server/engine/cancel_flag.h"
#include "server/engine/target_quotas.h"

namespace aerie {

struct EngineOptions {
  int32_t max_k = 16;                   // 1..128: most tokens of one proposal
  int32_t max_rows_per_call = 4096;     // >= 1
  int32_t max_sessions = 1024;          // >= 1
  int32_t max_queued = 1024;            // calls that wait for their first pass; >= 1
  int32_t max_context = 8192;           // rows of one session; >= 1
  int32_t max_rows_per_pass = 512;      // extend rows of one pass, over all sessions; >= 1
  int32_t max_sessions_per_pass = 64;   // >= 1
  int32_t max_sessions_per_client = 0;  // 0: as many as there may be
  int32_t max_queued_per_client = 0;    // 0: as many as there may be
  std::map<std::string, int32_t> client_weights;  // share of a pass's rows; 1..1000, others: 1
  absl::Duration session_lease =
      absl::Minutes(10);  // idle time after which a session is closed; > 0
  // Rows past sink + window of a session are dropped from its draft KV; 0: none ever is.
  int32_t draft_window = 0;
  int32_t draft_sink = 4;  // rows at the start that a window keeps
  TargetQuotaMap target_quotas;
  std::shared_ptr<TargetQuotas> target_shares;  // these, of all engines together; null: none
  // What the ids of all sessions begin with, so that who has several engines knows whose one is.
  std::string session_tag;

  // INVALID_ARGUMENT that names the flag and the value.
  absl::Status Validate() const;
};

struct OpenResult {
  std::string session_id;
  int32_t max_k = 0;  // in force
  absl::Duration lease;
  int64_t length = 0;  // start, or fork_length
  int32_t top_m = 0;   // in force; 0 at temperature 0
};

enum class NoDraftReason {
  kNone,
  kNotAsked,
  kContextLimit,
  kDeadline,
  kNotWorthwhile,  // adaptive k chose fewer
};

// One draft call. What needs no session (a known dtype, no NaN) has been checked by the caller.
struct DraftCall {
  std::variant<std::string, Manifest> sequence;  // session id, or stateless
  std::string client;  // of a stateless call: who makes it; empty: nobody knows
  uint64_t seq = 0;    // 0: not numbered
  int64_t base_length = 0;
  std::vector<int32_t> tokens;
  HiddenRows rows;                   // [tokens.size(), width]
  bool fp8 = false, fused = false;   // how they came, if any did
  bool shared_memory = false;        // not in the message
  std::optional<int64_t> row_bytes;  // as they travelled; unset: those of `rows`
  std::shared_ptr<const void>
      rows_owner;  // keeps the bytes of `rows` alive; let go once they are read
  int32_t k = 0;
  std::optional<int32_t> accepted;  // what the worker counted
  // What the target's last verification took, over how many draft tokens; both or neither.
  std::optional<absl::Duration> verify_time;
  int32_t verify_tokens = 0;
  absl::Time arrival = absl::InfinitePast();  // unset: when the engine takes the call
  absl::Duration copy_in;  // of the time since then, spent on reading and checking the request
  absl::Time deadline = absl::InfiniteFuture();
  std::shared_ptr<const CancelFlag> cancel;  // may be null
};

struct DraftTiming {
  absl::Duration queue, extend, step, total;
};

enum class ProposalMethod { kGreedyChain, kSampledChain, kGreedyTree, kSampledTree };

struct DraftResult {
  uint64_t seq = 0;
  int64_t length = 0;
  DraftTree tree;
  ProposalMethod method = ProposalMethod::kGreedyChain;
  std::optional<KChoice> k_choice;  // of a session with adaptive_k
  NoDraftReason no_draft_reason = NoDraftReason::kNone;
  std::optional<int32_t> accepted;  // of the previous proposal
  DraftTiming timing;
  TreeExtras extras;  // the session's, for who encodes the tree
};

using OpenDone = absl::AnyInvocable<void(absl::StatusOr<OpenResult>)>;
using DraftDone = absl::AnyInvocable<void(absl::StatusOr<DraftResult>)>;
using CloseDone = absl::AnyInvocable<void(absl::StatusOr<AcceptanceRecord>)>;

}  // namespace aerie
