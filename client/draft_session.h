// One sequence on the draft server, seen from its target worker.
//
// A draft is help, not a need: every call comes back by its deadline, and when it has no proposal
// it says why and the worker decodes the round alone. Rows that did not reach the server are not
// lost for good: the next call notices and either fetches them from the RowSource or says in
// `resend_from` where the worker has to start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/call_metadata.h"
#include "client/client_core.h"
#include "client/draft_call.h"
#include "common/acceptance_record.h"
#include "common/manifest.h"
#include "common/session_options.h"

namespace aerie {

// Gives rows [first, last) of the sequence, of which the session has lost what it held. The batch
// must stay valid until the source is asked again or the call that asked returns. A failure ends
// the call.
using RowSource = std::function<absl::StatusOr<RowBatch>(int64_t first, int64_t last)>;

struct SessionSettings {
  // A fork that is lost is opened anew without its parent, which may be lost as well: all its rows
  // are sent again.
  SessionOptions options;
  RowSource row_source;  // may be empty: then `resend_from` is the worker's business
  // Behind a proxy sessions with equal keys come to one server. Empty: one that no other session
  // has, but for a fork, which gets that of its parent when the parent is this client's. Of the
  // fork of another client's session it must be that one's. 1 to 64 letters, digits, '.', '-', '_'.
  // Only with TransportKind::kUnary: a stream goes to one server whatever its sessions are.
  std::string key;
};

// One thread at a time. May outlive its client.
class DraftSession {
 public:
  // Made by DraftClient::Open.
  DraftSession(std::shared_ptr<ClientCore> core, Manifest manifest, SessionSettings settings);
  // Closes the session if Close() has not, without waiting long; a server that does not hear of it
  // lets its lease run out.
  ~DraftSession();
  DraftSession(const DraftSession&) = delete;
  DraftSession& operator=(const DraftSession&) = delete;

  // Opens it on the server. As DraftService.OpenSession; INVALID_ARGUMENT also without a server,
  // for options that contradict each other and for a key that cannot be used. FAILED_PRECONDITION:
  // the server drafts otherwise than the options ask for.
  absl::Status Open(absl::Time deadline);

  // Commits rows and drafts k tokens. Rows that exceed one message go in several, of which the last
  // one drafts.
  DraftOutcome Draft(const DraftInput& input);

  // `final_tokens`: committed since the last Draft, so that the last proposal is judged too.
  // NOT_FOUND: the session was lost, and its record with it. No call may follow.
  absl::StatusOr<AcceptanceRecord> Close(absl::Span<const int32_t> final_tokens);

  // Changes when a lost session is opened anew; empty while it is lost.
  const std::string& id() const { return id_; }
  // What tells a proxy which server holds it. Stays when a lost session is opened anew.
  const std::string& key() const { return metadata_.key; }
  // The options in force, as the server told them; fork, start and client as they were asked for.
  const SessionOptions& options() const { return in_force_; }
  // The largest k that the server takes.
  int32_t max_k() const { return in_force_.max_k; }
  // Rows that it began with, which need not be sent: options.start, or the fork's.
  int64_t initial_length() const { return initial_length_; }

 private:
  // What one message asks for beside its rows.
  struct Wish {
    int32_t k = 0;
    std::optional<int32_t> accepted;
    std::optional<VerifyCost> verify_cost;
  };

  absl::Status CheckKey() const;
  absl::Status CheckInput(const DraftInput& input) const;
  // The server does not have it, or not any more.
  void ForgetId();
  // Closes the session without waiting long.
  void Abandon();
  absl::Status ReadOpened(const v1::OpenSessionResponse& response);
  // Brings the server everything from row `from` on, up to the end of `input`.
  absl::Status SendFrom(int64_t from, const DraftInput& input, absl::Time deadline,
                        DraftOutcome* outcome);
  absl::Status SendRows(int64_t first, const RowBatch& batch, const Wish& wish, absl::Time deadline,
                        DraftOutcome* outcome);
  absl::Status SendMessage(int64_t first, const RowBatch& batch, const Wish& wish,
                           absl::Time deadline, DraftOutcome* outcome);

  const std::shared_ptr<ClientCore> core_;
  const Manifest manifest_;
  const SessionSettings settings_;
  const CallMetadata metadata_;
  std::string id_;
  bool was_open_ = false;
  SessionOptions in_force_;
  int64_t initial_length_ = 0;
  int64_t rows_per_call_ = 0;
  uint64_t seq_ = 0;
  bool closed_ = false;
};

}  // namespace aerie
