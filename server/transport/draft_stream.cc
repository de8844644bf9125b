#include "server/transport/draft_stream.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "server/transport/call_trace.h"
#include "server/transport/draft_messages.h"
#include "server/transport/unary_call.h"

namespace aerie {
namespace {

// Ends a stream that comes too early, or from a stranger.
class RefusedStream final : public DraftStreamReactor {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(rpc::ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

absl::Status Draining() {
  return WithReason(
      absl::UnavailableError("the server is draining and takes no more requests; expected new "
                             "streams elsewhere; reconnect to another server"),
      kReasonDraining);
}

absl::Status Malformed(const std::string& trouble) {
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          "a message on the stream cannot be read (", trouble, "); expected an ",
          "aerie.v1.DraftStreamRequest; compare the client's contract with the server's, and open ",
          "a new stream: this one ends, with its sessions")),
      kReasonRequestInvalid);
}

grpc::Status ReadMessage(grpc::ByteBuffer* bytes, v1::DraftStreamRequest* message) {
  return grpc::SerializationTraits<v1::DraftStreamRequest>::Deserialize(bytes, message);
}

grpc::ByteBuffer WriteMessage(const v1::DraftStreamResponse& message) {
  grpc::ByteBuffer bytes;
  bool owned = false;
  const grpc::Status written =
      grpc::SerializationTraits<v1::DraftStreamResponse>::Serialize(message, &bytes, &owned);
  AERIE_CHECK(written.ok()) << written.error_message();
  return bytes;
}

// Whose order the reply has to keep; empty: nobody's.
const std::string& SessionOf(const v1::DraftStreamRequest& message) {
  return message.has_draft() ? message.draft().session_id() : message.close_session().session_id();
}

}  // namespace

DraftStreamReactor* DraftStream::Start(const ServiceBackend* backend, const AccessControl* access,
                                       const ServiceLimits& limits,
                                       const grpc::CallbackServerContext* context,
                                       StreamRegistry* registry) {
  absl::StatusOr<std::string> caller = "";
  if (access != nullptr) caller = access->Admit(*context, Role::kDraft);
  if (!caller.ok()) return new RefusedStream(caller.status());
  if (backend == nullptr) return new RefusedStream(StillLoading());
  auto stream =
      std::make_shared<DraftStream>(backend, *std::move(caller), limits, context, registry);
  stream->self_ = stream;
  registry->Add(stream);
  stream->mutex_.Lock();
  stream->AdvanceAndUnlock();
  return stream.get();
}

DraftStream::DraftStream(const ServiceBackend* backend, std::string caller,
                         const ServiceLimits& limits, const grpc::CallbackServerContext* context,
                         StreamRegistry* registry)
    : backend_(backend),
      caller_(std::move(caller)),
      account_(AccountOf(caller_, context->peer())),
      limits_(limits),
      context_(context),
      deadline_(DeadlineOf(*context)),
      traceparent_(TraceOf(*context, backend->rpc_observer)),
      registry_(registry),
      record_(backend->rpc_observer, {RpcType::kBidiStream, kDraftServiceName, "DraftStream"}) {}

void DraftStream::BeginDrain() {
  mutex_.Lock();
  draining_ = true;
  AdvanceAndUnlock();
}

void DraftStream::OnReadDone(bool ok) {
  std::optional<ThreadLoan> thread;  // ends last: while it computes, the next message may be read
  const RequestPtr request = std::make_shared<Request>();
  grpc::Status read;
  if (ok) {
    request->arrival = absl::Now();
    request->bytes = static_cast<int64_t>(incoming_.Length());
    record_.Received(request->bytes);
    read = ReadMessage(&incoming_, &request->message);
    request->held =
        request->bytes + BytesInSharedMemory(request->message.draft(), limits_.max_message_bytes);
  }
  mutex_.Lock();
  if (!ok) {
    reads_over_ = true;
  } else if (!read.ok()) {
    malformed_ = Malformed(read.error_message());
    const ServedDrafterPtr drafter = backend_->drafters->First();
    if (drafter->round_observer != nullptr) {
      drafter->round_observer->OnRejected(RejectReason::kShape);
    }
  } else if (!Ending()) {
    const std::vector<RequestPtr> requests = Unpack(request);
    int64_t rows = 0;
    for (const RequestPtr& each : requests) {
      rows += each->message.draft().token_ids_size();
      each->ticket = order_.Expect(SessionOf(each->message));
      in_flight_.insert(each);
      bytes_in_flight_ += each->held;
    }
    const bool alone = IsAlone(requests);
    mutex_.Unlock();
    thread.emplace(rows);
    for (const RequestPtr& each : requests) Handle(each, *thread);
    if (alone) thread.reset();
    mutex_.Lock();
  }
  // Only now may the next one be read: requests are handed on in the order in which they came.
  reading_ = false;
  AdvanceAndUnlock();
}

void DraftStream::OnWriteDone(bool ok) {
  mutex_.Lock();
  writing_ = false;
  --unwritten_;
  if (!ok) broken_ = true;
  AdvanceAndUnlock();
}

void DraftStream::OnCancel() {
  mutex_.Lock();
  broken_ = true;
  for (const RequestPtr& request : in_flight_) request->cancel->Set();
  const std::vector<std::string> sessions = TakeOwned();
  mutex_.Unlock();
  // At once, not when the last round is done: the calls that wait need not run.
  CloseAll(sessions);
  mutex_.Lock();
  AdvanceAndUnlock();
}

void DraftStream::OnDone() {
  // Only now it is sure whether the client heard the end: a cancel looks like a half-close until
  // then.
  if (context_->IsCancelled()) {
    final_code_ = absl::Now() < deadline_ ? absl::StatusCode::kCancelled
                                          : absl::StatusCode::kDeadlineExceeded;
  }
  record_.Handled(final_code_);
  const std::shared_ptr<DraftStream> self = std::move(self_);  // may delete the stream on return
  registry_->Remove(self);
}

void DraftStream::Reply(const RequestPtr& request, v1::DraftStreamResponse response) {
  response.set_id(request->message.id());
  // Before the reply can be read: whoever is answered may ask again at once.
  request->stay.Leave();
  mutex_.Lock();
  in_flight_.erase(request);
  bytes_in_flight_ -= request->held;
  ++unwritten_;
  for (v1::DraftStreamResponse& reply : order_.Complete(request->ticket, std::move(response))) {
    replies_.push_back(std::move(reply));
  }
  AdvanceAndUnlock();
}

void DraftStream::Own(const std::string& session_id) {
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_) {
      owned_.insert(session_id);
      return;
    }
  }
  CloseAll({session_id});  // opened for a client that has gone
}

void DraftStream::Disown(const std::string& session_id) {
  absl::MutexLock lock(&mutex_);
  owned_.erase(session_id);
}

void DraftStream::CloseAll(const std::vector<std::string>& session_ids) {
  for (const std::string& id : session_ids) {
    const absl::StatusOr<ServedDrafterPtr> drafter = backend_->drafters->ForSession(id);
    if (!drafter.ok()) continue;  // its lease ran out, and its drafter has been freed since
    (*drafter)->engine->Close(id, {}, SessionEnd::kStreamClosed,
                              [drafter = *drafter](absl::StatusOr<AcceptanceRecord>) {});
  }
}

std::vector<std::string> DraftStream::TakeOwned() {
  std::vector<std::string> sessions(owned_.begin(), owned_.end());
  owned_.clear();
  return sessions;
}

bool DraftStream::Ending() const { return reads_over_ || broken_ || draining_ || !malformed_.ok(); }

bool DraftStream::IsAlone(const std::vector<RequestPtr>& requests) const {
  return in_flight_.size() == 1 && requests.size() == 1 && owned_.size() == 1 &&
         requests[0]->message.draft().session_id() == *owned_.begin();
}

bool DraftStream::HasRoom() const {
  return unwritten_ + static_cast<int64_t>(in_flight_.size()) < limits_.max_stream_in_flight &&
         bytes_in_flight_ < limits_.max_message_bytes;
}

void DraftStream::AdvanceAndUnlock() {
  while (!finished_) {
    if (broken_) {
      unwritten_ -= static_cast<int64_t>(replies_.size());
      replies_.clear();
    }
    const bool read = !reading_ && !Ending() && HasRoom();
    const bool write = !writing_ && !replies_.empty();
    if (!read && !write) {
      const bool idle = in_flight_.empty() && unwritten_ == 0 && pins_ == 0;
      if (Ending() && idle) return FinishAndUnlock();
      break;
    }
    if (read) reading_ = true;
    v1::DraftStreamResponse reply;
    if (write) {
      writing_ = true;
      reply = std::move(replies_.front());
      replies_.pop_front();
    }
    ++pins_;
    mutex_.Unlock();
    if (write) {
      outgoing_ = WriteMessage(reply);
      record_.Sent(static_cast<int64_t>(outgoing_.Length()));
      StartWrite(&outgoing_);
    }
    if (read) StartRead(&incoming_);
    mutex_.Lock();
    --pins_;
  }
  mutex_.Unlock();
}

void DraftStream::FinishAndUnlock() {
  finished_ = true;
  absl::Status status;
  if (broken_) {
    status = absl::CancelledError("the client has gone");  // nobody reads it
  } else if (!malformed_.ok()) {
    status = malformed_;
  } else if (!reads_over_) {
    status = Draining();
  }
  final_code_ = status.code();
  const std::vector<std::string> sessions = TakeOwned();
  mutex_.Unlock();
  // Before the end is told: who sees the end may count on it.
  CloseAll(sessions);
  Finish(rpc::ToGrpcStatus(status));
}

}  // namespace aerie
