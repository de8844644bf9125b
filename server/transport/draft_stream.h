// One DraftStream: requests of many sessions in, replies out.
//
// Messages come and go as bytes and are read and written here: gRPC tells a message that it cannot
// read in the same way as the end of all messages, and a client whose bytes are wrong must not be
// told that all went well.
//
// A message brings one request or a batch of them, and from there on nobody knows which it was.
//
// A reactor: gRPC calls its On... methods, one read and one write at a time; the engine's callbacks
// give the replies. A *request* is in flight from its read until its reply is written or dropped,
// and while too many are, the stream is not read. Sessions that were opened on the stream are
// closed when it ends, however it ends.
//
// gRPC may be called only while the stream is unfinished, and Finish() only once nobody else is
// about to call gRPC. So all such calls are decided in AdvanceAndUnlock(), under the lock, and made
// without it (gRPC may call back from within); `pins_` counts the threads between decision and
// return, and the stream is finished only at zero.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/engine/cancel_flag.h"
#include "server/transport/access_control.h"
#include "server/transport/reply_order.h"
#include "server/transport/rpc_record.h"
#include "server/transport/service_backend.h"
#include "server/transport/stream_registry.h"
#include "server/transport/thread_loan.h"

namespace aerie {

using DraftStreamReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class DraftStream final : public DraftStreamReactor,
                          public Drainable,
                          public std::enable_shared_from_this<DraftStream> {
 public:
  // Makes the reactor of a new stream; it deletes itself when gRPC is done with it. Without a
  // backend the stream ends at once: the drafter is loading; so does one of a caller that
  // `access` (may be null) does not admit. The stream's deadline is every request's.
  static DraftStreamReactor* Start(const ServiceBackend* backend, const AccessControl* access,
                                   const ServiceLimits& limits,
                                   const grpc::CallbackServerContext* context,
                                   StreamRegistry* registry);

  DraftStream(const ServiceBackend* backend, std::string caller, const ServiceLimits& limits,
              const grpc::CallbackServerContext* context, StreamRegistry* registry);

  void BeginDrain() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // The engine's rows point into the message.
  struct Request {
    v1::DraftStreamRequest message;
    int64_t bytes = 0;  // of the message
    int64_t held = 0;   // and of its rows in shared memory
    absl::Time arrival;
    ClientLimits::Stay stay;
    ReplyOrder<v1::DraftStreamResponse>::Ticket ticket = 0;
    const std::shared_ptr<CancelFlag> cancel = std::make_shared<CancelFlag>();
  };
  using RequestPtr = std::shared_ptr<Request>;

  // The requests that a message brings: itself, or those of its batch, taken out of it. A batch
  // that may not be stays whole, for Handle() to refuse.
  std::vector<RequestPtr> Unpack(RequestPtr message) const;

  // draft_stream_requests.cc: decode, hand on, encode. Without the lock: a refused call is answered
  // before the engine returns.
  void Handle(const RequestPtr& request, ThreadLoan& thread);
  void HandleOpen(const RequestPtr& request);
  void HandleDraft(const RequestPtr& request, ThreadLoan& thread);
  void HandleClose(const RequestPtr& request);
  void RefuseBatch(const RequestPtr& request);
  // Counts a request, and the rows that it brings, for its client. False: it comes too early, and
  // has been answered; `drafter` is whose it would have been.
  bool TakeShare(const RequestPtr& request, int64_t rows, const ServedDrafter& drafter);
  // The request itself is at fault: no engine has seen it. `drafter`: whose it would have been.
  void Reject(const RequestPtr& request, const absl::Status& status, const ServedDrafter& drafter);
  // It is no drafter's that is here.
  void FailNobodys(const RequestPtr& request, const absl::Status& status);
  void Fail(const RequestPtr& request, const absl::Status& status);
  // Tells log and metrics what a request is answered with.
  void Tell(const Request& request, const absl::Status& status) const;

  // Any thread, once for every request.
  void Reply(const RequestPtr& request, v1::DraftStreamResponse response);
  // From now on the session ends with the stream.
  void Own(const std::string& session_id);
  void Disown(const std::string& session_id);
  void CloseAll(const std::vector<std::string>& session_ids);
  std::vector<std::string> TakeOwned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether no further request is taken.
  bool Ending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether these, just read, are a draft of the stream's only session with no other in flight:
  // then nothing that the stream may bring would be served before it.
  bool IsAlone(const std::vector<RequestPtr>& requests) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts every read, write or finish that is due. The lock is held on entry and free on return;
  // the stream may then be gone, save to those who hold a reference.
  void AdvanceAndUnlock() ABSL_UNLOCK_FUNCTION(mutex_);
  void FinishAndUnlock() ABSL_UNLOCK_FUNCTION(mutex_);

  const ServiceBackend* const backend_;
  const std::string caller_;   // who it was admitted as; empty: nobody was asked
  const std::string account_;  // whom its requests count for
  const ServiceLimits limits_;
  const grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone()
  const absl::Time deadline_;
  const std::string traceparent_;  // of the stream's metadata; empty: none that can be read
  StreamRegistry* const registry_;
  RpcRecord record_;
  std::shared_ptr<DraftStream> self_;  // from Start() to OnDone()

  absl::Mutex mutex_;
  ReplyOrder<v1::DraftStreamResponse> order_ ABSL_GUARDED_BY(mutex_);
  std::set<RequestPtr> in_flight_ ABSL_GUARDED_BY(mutex_);               // not replied to yet
  int64_t bytes_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;                  // of these
  std::deque<v1::DraftStreamResponse> replies_ ABSL_GUARDED_BY(mutex_);  // may be written now
  int64_t unwritten_ ABSL_GUARDED_BY(mutex_) = 0;        // replied to, but not written or dropped
  std::set<std::string> owned_ ABSL_GUARDED_BY(mutex_);  // sessions opened here
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;         // a read is under way or being handed on
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_over_ ABSL_GUARDED_BY(mutex_) = false;  // the client has half-closed or is gone
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;      // cancelled: nobody reads replies
  absl::Status malformed_ ABSL_GUARDED_BY(mutex_);   // not OK: a message could not be read
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int pins_ ABSL_GUARDED_BY(mutex_) = 0;

  // Of the read and the write under way; gRPC's until they are done.
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  absl::StatusCode final_code_ = absl::StatusCode::kOk;
};

}  // namespace aerie
