#include "server/transport/thread_loan.h"

#include <atomic>
#include <utility>

namespace aerie {
namespace {

// What one pass takes in, and more than any round commits.
constexpr int64_t kMostRows = 64;

std::atomic<bool> lent{false};

}  // namespace

ThreadLoan::ThreadLoan(int64_t rows)
    : granted_(rows > 0 && rows <= kMostRows && !lent.exchange(true)) {}

ThreadLoan::~ThreadLoan() {
  if (!granted_) return;
  if (drafter_ != nullptr) drafter_->engine->Help();
  lent.store(false);
}

void ThreadLoan::Draft(const ServedDrafterPtr& drafter, DraftCall call, DraftDone done) {
  DraftEngine::Wake wake = DraftEngine::Wake::kOwnThread;
  if (granted_ && (drafter_ == nullptr || drafter_ == drafter)) {
    drafter_ = drafter;
    wake = DraftEngine::Wake::kNobody;
  }
  drafter->engine->Draft(std::move(call), std::move(done), wake);
}

}  // namespace aerie
