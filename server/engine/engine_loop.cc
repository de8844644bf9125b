#include "server/engine/engine_loop.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/engine/refusals.h"
#include "server/engine/row_observer.h"

namespace aerie {

EngineLoop::EngineLoop(EngineOptions options, std::unique_ptr<DraftModel> model,
                       RoundObserver* observer, RowObserver* row_observer)
    : options_(std::move(options)),
      model_(std::move(model)),
      observer_(observer),
      core_(options_, model_.get(), observer, row_observer),
      thread_([this] { Run(); }) {}

EngineLoop::~EngineLoop() {
  {
    MutexLock lock(&mutex_);
    draining_ = stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::Status EngineLoop::Post(Kind kind, Work& work, DraftEngine::Wake wake) {
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
  if (wake == DraftEngine::Wake::kOwnThread || !model_->runs_on_any_thread()) changed_.NotifyAll();
  return absl::OkStatus();
}

void EngineLoop::Help() {
  if (!model_->runs_on_any_thread()) return;
  std::vector<Mail> mail;
  {
    MutexLock lock(&mutex_);
    // Another helper is not to be kept for the calls of others.
    if (driver_ == Driver::kHelper) changed_.NotifyAll();
    if (driver_ != Driver::kNobody || stopping_ || mailbox_.empty()) return;
    driver_ = Driver::kHelper;
    mail = TakeMail();
  }
  while (true) {
    DoMail(std::move(mail));
    RunPass();
    const bool has_work = HasWork();
    MutexLock lock(&mutex_);
    if (wanted_ || stopping_ || (mailbox_.empty() && !core_.HasWork())) {
      driver_ = Driver::kNobody;
      // No lease ends earlier for what was done here: calls that open and close wake the engine's
      // own thread.
      recalled_ = has_work;
      // Under the lock: once it is free the engine may be gone.
      if (wanted_ || recalled_) changed_.NotifyAll();
      return;
    }
    mail = TakeMail();
  }
}

bool EngineLoop::Drain(absl::Time deadline) {
  MutexLock lock(&mutex_);
  draining_ = true;
  return changed_.WaitUntil(&mutex_, deadline, [this] { return NothingOutstanding(); });
}

void EngineLoop::Run() {
  bool stopping = false;
  while (true) {
    const bool idle = !HasWork();
    const absl::Time expiry = core_.NextExpiry();
    std::vector<Mail> mail;
    {
      MutexLock lock(&mutex_);
      if (idle) Rest(expiry);
      mail = TakeMail();
      stopping = stopped_ = stopping_;
    }
    DoMail(std::move(mail));
    if (stopping) break;
    if (!RunPass()) RunTrial();
  }
  core_.Shutdown(absl::Now());
  Deliver();
}

void EngineLoop::Rest(absl::Time expiry) {
  if (IsCalled()) return;
  driver_ = Driver::kNobody;
  changed_.WaitUntil(&mutex_, expiry, [this] { return IsCalled(); });
  wanted_ = true;
  changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] { return IsFree(); });
  wanted_ = recalled_ = false;
  driver_ = Driver::kOwnThread;
}

std::vector<EngineLoop::Mail> EngineLoop::TakeMail() {
  taken_drafts_ = std::exchange(posted_drafts_, 0);
  return std::exchange(mailbox_, {});
}

void EngineLoop::DoMail(std::vector<Mail> mail) {
  for (Mail& item : mail) {
    if (item.kind == Kind::kDraft) --taken_drafts_;
    item.work(core_, absl::Now());
    Deliver();
  }
}

bool EngineLoop::RunPass() {
  core_.ExpireLeases(absl::Now());
  const bool formed = core_.FormPass(absl::Now());
  Deliver();
  if (!formed) return false;
  core_.RunPass();
  core_.SettlePass(absl::Now());
  Deliver();
  return true;
}

void EngineLoop::RunTrial() {
  if (core_.PrepareTrial()) core_.RunTrial(absl::Now());
}

void EngineLoop::Deliver() {
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
  if (outstanding_ == 0 && draining_) changed_.NotifyAll();
}

}  // namespace aerie
