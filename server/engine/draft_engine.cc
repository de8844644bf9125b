#include "server/engine/draft_engine.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/engine/draft_core.h"
#include "server/engine/engine_loop.h"

namespace aerie {

DraftEngine::DraftEngine(EngineOptions options, std::unique_ptr<DraftModel> model,
                         RoundObserver* observer, RowObserver* row_observer)
    : loop_(std::make_unique<EngineLoop>(std::move(options), std::move(model), observer,
                                         row_observer)) {}

DraftEngine::~DraftEngine() = default;

void DraftEngine::Open(Manifest manifest, SessionOptions options, OpenDone done) {
  // Shared by the work and the refusal: only one of them runs.
  auto shared_done = std::make_shared<OpenDone>(std::move(done));
  EngineLoop::Work work = [manifest = std::move(manifest), options, shared_done](DraftCore& core,
                                                                                 absl::Time now) {
    core.Open(manifest, options, std::move(*shared_done), now);
  };
  const absl::Status posted = loop_->Post(EngineLoop::Kind::kOpen, work, Wake::kOwnThread);
  if (!posted.ok()) (*shared_done)(posted);
}

void DraftEngine::Draft(DraftCall call, DraftDone done, Wake wake) {
  if (call.arrival == absl::InfinitePast()) call.arrival = absl::Now();
  auto shared_done = std::make_shared<DraftDone>(std::move(done));
  EngineLoop::Work work = [call = std::move(call), shared_done](DraftCore& core,
                                                                absl::Time now) mutable {
    core.Draft(std::move(call), std::move(*shared_done), now);
  };
  const absl::Status posted = loop_->Post(EngineLoop::Kind::kDraft, work, wake);
  if (posted.ok()) return;
  if (absl::IsResourceExhausted(posted)) loop_->observer()->OnRejected(RejectReason::kQueueFull);
  (*shared_done)(posted);
}

void DraftEngine::Close(std::string session_id, std::vector<int32_t> final_tokens, SessionEnd end,
                        CloseDone done) {
  auto shared_done = std::make_shared<CloseDone>(std::move(done));
  EngineLoop::Work work = [session_id = std::move(session_id),
                           final_tokens = std::move(final_tokens), end,
                           shared_done](DraftCore& core, absl::Time now) mutable {
    core.Close(session_id, std::move(final_tokens), end, std::move(*shared_done), now);
  };
  const absl::Status posted = loop_->Post(EngineLoop::Kind::kClose, work, Wake::kOwnThread);
  if (!posted.ok()) (*shared_done)(posted);
}

void DraftEngine::Help() { loop_->Help(); }
bool DraftEngine::Drain(absl::Time deadline) { return loop_->Drain(deadline); }
const DrafterSpec& DraftEngine::spec() const { return loop_->model().spec(); }
const EngineOptions& DraftEngine::options() const { return loop_->options(); }

}  // namespace aerie
