#include "server/engine/draft_engine.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "common/mutex.h"
#include "server/engine/draft_core.h"
#include "server/engine/refusals.h"
#include "server/engine/row_observer.h"

namespace aerie {

// A mailbox, the thread that empties it, and the core that this thread drives.
class DraftEngine::Impl {
 public:
  Impl(EngineOptions options, std::unique_ptr<DraftModel> model, RoundObserver* observer,
       RowObserver* row_observer)
      : options_(options),
        model_(std::move(model)),
        observer_(observer),
        core_(options_, model_.get(), observer, row_observer),
        thread_([this] { Run(); }) {}

  ~Impl() {
    {
      MutexLock lock(&mutex_);
      draining_ = stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  // What the engine thread does with a call that it took from the mailbox.
  using Work = absl::AnyInvocable<void(DraftCore&, absl::Time)>;
  enum class Kind { kOpen, kDraft, kClose };

  // OK: `work` will be done. Otherwise the call is refused and `work` is left alone.
  absl::Status Post(Kind kind, Work& work) {
    {
      MutexLock lock(&mutex_);
      // Closing frees what others wait for: it is taken as long as there is a thread to do it.
      if (kind == Kind::kClose ? stopped_ : draining_) return DrainingError();
      if (kind == Kind::kDraft) {
        if (queued_ >= options_.max_queued) return QueueFullError(options_.max_queued);
        ++queued_;
        ++posted_drafts_;
      }
      ++outstanding_;
      mailbox_.push_back({kind, std::move(work)});
    }
    // Without the lock: a thread that is woken under it runs into it and goes back to sleep.
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  bool Drain(absl::Time deadline) {
    MutexLock lock(&mutex_);
    draining_ = true;
    return changed_.WaitUntil(&mutex_, deadline, [this] { return NothingOutstanding(); });
  }

  const EngineOptions& options() const { return options_; }
  const DraftModel& model() const { return *model_; }
  RoundObserver* observer() const { return observer_; }

 private:
  struct Mail {
    Kind kind;
    Work work;
  };

  void Run() {
    while (true) {
      std::vector<Mail> mail;
      bool stopping = false;
      const bool idle = !core_.HasWork() && !core_.PrepareTrial();
      {
        MutexLock lock(&mutex_);
        if (idle) {
          changed_.WaitUntil(&mutex_, core_.NextExpiry(), [this] { return HasMail(); });
        }
        mail.swap(mailbox_);
        taken_drafts_ = std::exchange(posted_drafts_, 0);
        stopping = stopped_ = stopping_;
      }
      for (Mail& item : mail) {
        if (item.kind == Kind::kDraft) --taken_drafts_;
        item.work(core_, absl::Now());
        Deliver();
      }
      if (stopping) break;
      core_.ExpireLeases(absl::Now());
      if (core_.FormPass(absl::Now())) {
        Deliver();
        core_.RunPass();
        core_.SettlePass(absl::Now());
      } else if (core_.PrepareTrial()) {
        core_.RunTrial(absl::Now());
      }
      Deliver();
    }
    core_.Shutdown(absl::Now());
    Deliver();
  }

  // Opens the door for the calls that left the queue, then answers: whoever is answered may call
  // again at once.
  void Deliver() {
    std::vector<DraftCore::Answer> answers = core_.TakeAnswers();
    {
      MutexLock lock(&mutex_);
      queued_ = posted_drafts_ + taken_drafts_ + core_.queued();
    }
    if (answers.empty()) return;
    const auto count = static_cast<int64_t>(answers.size());
    for (DraftCore::Answer& answer : answers) answer();
    answers.clear();
    MutexLock lock(&mutex_);
    outstanding_ -= count;
    if (outstanding_ == 0) changed_.NotifyAll();
  }

  // Asked under the lock, where the analysis cannot follow.
  bool HasMail() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return !mailbox_.empty() || stopping_; }
  bool NothingOutstanding() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return outstanding_ == 0; }

  const EngineOptions options_;
  const std::unique_ptr<DraftModel> model_;
  RoundObserver* const observer_;

  Mutex mutex_;
  Condition changed_;  // mail came, or the last answer went out
  std::vector<Mail> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the mailbox has been emptied for the last time
  int32_t posted_drafts_ ABSL_GUARDED_BY(mutex_) = 0;  // of mailbox_
  int32_t queued_ ABSL_GUARDED_BY(mutex_) = 0;         // draft calls before their first pass
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;    // calls that were taken and not answered yet

  // Engine thread only.
  int32_t taken_drafts_ = 0;  // taken from the mailbox, not yet given to the core
  DraftCore core_;

  std::thread thread_;  // last: everything above must be there when it starts
};

DraftEngine::DraftEngine(EngineOptions options, std::unique_ptr<DraftModel> model,
                         RoundObserver* observer, RowObserver* row_observer)
    : impl_(std::make_unique<Impl>(options, std::move(model), observer, row_observer)) {}

DraftEngine::~DraftEngine() = default;

void DraftEngine::Open(Manifest manifest, SessionOptions options, OpenDone done) {
  // Shared by the work and the refusal: only one of them runs.
  auto shared_done = std::make_shared<OpenDone>(std::move(done));
  Impl::Work work = [manifest = std::move(manifest), options, shared_done](DraftCore& core,
                                                                           absl::Time now) {
    core.Open(manifest, options, std::move(*shared_done), now);
  };
  const absl::Status posted = impl_->Post(Impl::Kind::kOpen, work);
  if (!posted.ok()) (*shared_done)(posted);
}

void DraftEngine::Draft(DraftCall call, DraftDone done) {
  if (call.arrival == absl::InfinitePast()) call.arrival = absl::Now();
  auto shared_done = std::make_shared<DraftDone>(std::move(done));
  Impl::Work work = [call = std::move(call), shared_done](DraftCore& core, absl::Time now) mutable {
    core.Draft(std::move(call), std::move(*shared_done), now);
  };
  const absl::Status posted = impl_->Post(Impl::Kind::kDraft, work);
  if (posted.ok()) return;
  if (absl::IsResourceExhausted(posted)) impl_->observer()->OnRejected(RejectReason::kQueueFull);
  (*shared_done)(posted);
}

void DraftEngine::Close(std::string session_id, std::vector<int32_t> final_tokens, SessionEnd end,
                        CloseDone done) {
  auto shared_done = std::make_shared<CloseDone>(std::move(done));
  Impl::Work work = [session_id = std::move(session_id), final_tokens = std::move(final_tokens),
                     end, shared_done](DraftCore& core, absl::Time now) mutable {
    core.Close(session_id, std::move(final_tokens), end, std::move(*shared_done), now);
  };
  const absl::Status posted = impl_->Post(Impl::Kind::kClose, work);
  if (!posted.ok()) (*shared_done)(posted);
}

bool DraftEngine::Drain(absl::Time deadline) { return impl_->Drain(deadline); }
const DrafterSpec& DraftEngine::spec() const { return impl_->model().spec(); }
const EngineOptions& DraftEngine::options() const { return impl_->options(); }

}  // namespace aerie
