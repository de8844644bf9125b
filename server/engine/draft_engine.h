// Drafting itself: sessions, batching and the model, behind three asynchronous calls.
//
// One thread at a time owns sessions and model, so nothing in here is locked but the mailbox in
// front of it. That thread, called the engine thread throughout, is the engine's own, or one that
// was lent by Help(). Callbacks run on it and must not block; a call that is refused at the door
// (queue full, draining) has its callback run on the caller's thread before the function returns.
// Every callback runs exactly once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/manifest.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "server/engine/round_observer.h"

namespace aerie {

class EngineLoop;
class RowObserver;

class DraftEngine {
 public:
  using OpenDone = aerie::OpenDone;
  using DraftDone = aerie::DraftDone;
  using CloseDone = aerie::CloseDone;

  // Who is to compute: the engine's own thread, or the caller's, which then calls Help() at once.
  enum class Wake { kOwnThread, kNobody };

  // Starts the engine's own thread. `options` must be valid. `observer` and `row_observer`, which
  // may be null, must outlive the engine.
  DraftEngine(EngineOptions options, std::unique_ptr<DraftModel> model, RoundObserver* observer,
              RowObserver* row_observer = nullptr);
  // Drains with no patience, then joins the thread: calls that are left are answered with
  // UNAVAILABLE.
  ~DraftEngine();

  // Any thread.
  //
  // RESOURCE_EXHAUSTED: the session table is full, or the client's part of it; tells when to try
  // again. UNAVAILABLE: draining. FAILED_PRECONDITION: the manifest does not fit, or the session to
  // fork cannot be forked now. NOT_FOUND: there is no session to fork. INVALID_ARGUMENT: options
  // that contradict each other or a limit.
  void Open(Manifest manifest, SessionOptions options, OpenDone done);
  // Codes as DraftService.Draft in draft.proto; RESOURCE_EXHAUSTED and UNAVAILABLE may come from
  // the door. INTERNAL: a pass failed; the detail's resend_from says where the session stands.
  // Calls of one session are served in the order of arrival.
  void Draft(DraftCall call, DraftDone done, Wake wake = Wake::kOwnThread);
  // Lends the calling thread: when nobody computes, it serves the calls that wait, and runs their
  // callbacks, as the engine's own thread would, which takes longer to wake than a small draft step
  // takes. Returns when no call is left, and when others called meanwhile: behind the pass under
  // way the engine's own thread then goes on. At once when somebody computes already, or the model
  // wants the engine's own thread. Not from a callback.
  void Help();
  // NOT_FOUND: no such session. INVALID_ARGUMENT: a final token outside the vocabulary; the session
  // goes on. `end` tells whether the client asked (kClosed: after the calls that came before) or
  // its stream ended (kStreamClosed: calls of the session that are not answered yet are answered
  // with CANCELLED).
  void Close(std::string session_id, std::vector<int32_t> final_tokens, SessionEnd end,
             CloseDone done);

  // From now on Open and Draft are refused with UNAVAILABLE; calls already taken are finished.
  // Returns when none is left, or at `deadline`; true when none was left. Idempotent. Not from a
  // callback: it would wait for itself.
  bool Drain(absl::Time deadline);

  const DrafterSpec& spec() const;
  const EngineOptions& options() const;

 private:
  std::unique_ptr<EngineLoop> loop_;
};

}  // namespace aerie
