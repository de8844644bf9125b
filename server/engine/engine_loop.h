// A mailbox, the core, and the threads that drive it: the engine's own, and those that are lent.
//
// The core has one driver at a time, and while it has one nobody else looks at it. The engine's own
// thread is the driver whenever there is something to do, but when it sleeps, a thread that has
// just left a call may drive in its place: to wake a thread takes longer than much of what a round
// of few rows takes. Such a helper gives the core up between two passes as soon as the engine's own
// thread, woken by somebody else's call, asks for it.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_core.h"
#include "server/engine/draft_engine.h"
#include "server/engine/draft_model.h"
#include "server/engine/round_observer.h"

namespace aerie {

class EngineLoop {
 public:
  // What is done with a call that was taken from the mailbox.
  using Work = absl::AnyInvocable<void(DraftCore&, absl::Time)>;
  enum class Kind { kOpen, kDraft, kClose };

  // As DraftEngine.
  EngineLoop(EngineOptions options, std::unique_ptr<DraftModel> model, RoundObserver* observer,
             RowObserver* row_observer);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Any thread. OK: `work` will be done. Otherwise the call is refused and `work` is left alone.
  absl::Status Post(Kind kind, Work& work, DraftEngine::Wake wake);
  // As DraftEngine.
  void Help();
  bool Drain(absl::Time deadline);

  const EngineOptions& options() const { return options_; }
  const DraftModel& model() const { return *model_; }
  RoundObserver* observer() const { return observer_; }

 private:
  struct Mail {
    Kind kind;
    Work work;
  };
  enum class Driver { kNobody, kOwnThread, kHelper };

  void Run();
  // Lets others drive until there is mail, `expiry`, or a helper leaves something to do.
  void Rest(absl::Time expiry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Mail> TakeMail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The rest: driver only.
  //
  // Whether there is something to do besides mail.
  bool HasWork() { return core_.HasWork() || core_.PrepareTrial(); }
  void DoMail(std::vector<Mail> mail);
  // False: there was no round to run.
  bool RunPass();
  void RunTrial();
  // Opens the door for the calls that left the queue, then answers: whoever is answered may call
  // again at once.
  void Deliver();

  // Asked under the lock, where the analysis cannot follow.
  bool IsCalled() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !mailbox_.empty() || stopping_ || recalled_;
  }
  bool IsFree() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return driver_ == Driver::kNobody; }
  bool NothingOutstanding() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return outstanding_ == 0; }

  const EngineOptions options_;
  const std::unique_ptr<DraftModel> model_;
  RoundObserver* const observer_;

  Mutex mutex_;
  Condition changed_;  // mail came, the last answer went out, or the core has no driver
  Driver driver_ ABSL_GUARDED_BY(mutex_) = Driver::kOwnThread;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;    // the engine's own thread waits for the core
  bool recalled_ ABSL_GUARDED_BY(mutex_) = false;  // a helper left something to do
  std::vector<Mail> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the mailbox has been emptied for the last time
  int32_t posted_drafts_ ABSL_GUARDED_BY(mutex_) = 0;  // of mailbox_
  int32_t queued_ ABSL_GUARDED_BY(mutex_) = 0;         // draft calls before their first pass
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;    // calls that were taken and not answered yet

  // Driver only.
  int32_t taken_drafts_ = 0;  // taken from the mailbox, not yet given to the core
  DraftCore core_;

  std::thread thread_;  // last: everything above must be there when it starts
};

}  // namespace aerie
