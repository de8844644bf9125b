#include "client/client_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/draft_transport.h"
#include "client/session_key.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"

namespace aerie {
namespace {

// Why a request got no answer. The end of a stream says nothing about one request, so it is a lost
// connection to all of them, unless the server refuses everybody, or this caller, and says why.
absl::Status EndOfStream(const grpc::Status& status) {
  if (absl::Status refused = rpc::FromGrpcStatus(status);
      (absl::IsUnavailable(refused) || absl::IsUnauthenticated(refused) ||
       absl::IsPermissionDenied(refused)) &&
      !DetailOf(refused).reason.empty()) {
    return refused;
  }
  return absl::UnavailableError(absl::StrCat(
      "the draft stream ended before the answer came (code ", static_cast<int>(status.error_code()),
      ": ", status.error_message(), "); reconnect and send the session's rows again"));
}

}  // namespace

ClientStream::ClientStream(v1::DraftService::Stub& stub, const std::string& key) {
  AddSessionKey(key, &context_);
  stub.async()->DraftStream(&context_, this);
  // Requests are written from outside gRPC's callbacks; the hold keeps gRPC from ending the call
  // under them.
  AddHold();
  StartRead(&incoming_);
  StartCall();
}

ClientStream::~ClientStream() { AERIE_CHECK(IsDone()) << "a stream that gRPC still uses"; }

absl::StatusOr<v1::DraftStreamResponse> ClientStream::Exchange(
    std::shared_ptr<const v1::DraftStreamRequest> request, absl::Time deadline) {
  const uint64_t id = request->id();
  Waiter waiter;
  absl::MutexLock lock(&mutex_);
  if (broken_) return EndOfStream(grpc::Status(grpc::StatusCode::UNAVAILABLE, "it had ended"));
  const bool is_new = waiters_.emplace(id, &waiter).second;
  AERIE_CHECK(is_new) << "two open requests have the id " << id;
  outgoing_.push_back(request);
  if (!writing_) WriteNext();
  const auto answered = [&waiter] { return waiter.answer.has_value(); };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&answered), deadline)) {
    waiters_.erase(id);
    // Not yet on its way: spare the server the work. The front may be in gRPC's hands.
    const auto first = outgoing_.begin() + (writing_ ? 1 : 0);
    outgoing_.erase(std::remove(first, outgoing_.end(), request), outgoing_.end());
    return DeadlinePassed();
  }
  return *std::move(waiter.answer);
}

bool ClientStream::IsBroken() {
  absl::MutexLock lock(&mutex_);
  return broken_;
}

bool ClientStream::IsDone() {
  absl::MutexLock lock(&mutex_);
  return done_;
}

void ClientStream::Finish(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  finishing_ = true;
  if (!writing_) WriteNext();
  if (mutex_.AwaitWithDeadline(absl::Condition(&done_), deadline)) return;
  context_.TryCancel();
  mutex_.Await(absl::Condition(&done_));
}

void ClientStream::WriteNext() {
  writing_ = !outgoing_.empty() && !broken_;
  if (writing_) {
    StartWrite(outgoing_.front().get());
  } else if (finishing_ && !half_closed_ && !broken_) {
    half_closed_ = true;
    StartWritesDone();
  }
}

void ClientStream::StopWriting() {
  if (broken_) return;
  broken_ = true;
  RemoveHold();
}

void ClientStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  outgoing_.pop_front();
  // A failed write means a dead stream: the read fails too, and OnDone tells the waiting.
  if (!ok) StopWriting();
  WriteNext();
}

void ClientStream::OnReadDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  if (!ok) {
    StopWriting();
    return;
  }
  if (const auto it = waiters_.find(incoming_.id()); it != waiters_.end()) {
    if (incoming_.has_error()) {
      it->second->answer = rpc::FromErrorDetail(incoming_.error());
    } else {
      it->second->answer = std::move(incoming_);
    }
    waiters_.erase(it);
  }
  incoming_.Clear();
  StartRead(&incoming_);
}

void ClientStream::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  broken_ = true;
  for (auto& [id, waiter] : waiters_) waiter->answer = EndOfStream(status);
  waiters_.clear();
  outgoing_.clear();
  done_ = true;  // from here on the owner may destroy this
}

}  // namespace aerie
