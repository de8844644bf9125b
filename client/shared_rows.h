// How a client's rows get into its calls: into a shared memory segment that the server knows, or,
// always possible, into the messages.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "aerie/v1/draft.pb.h"
#include "client/client_options.h"
#include "client/connection.h"
#include "client/shared_row_segment.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"

namespace aerie {

// Any thread.
class SharedRows {
 private:
  // A segment that the server knows.
  struct Registered {
    std::unique_ptr<SharedRowSegment> segment;
    std::string id;
  };

 public:
  // Rows of one call. To be held until the call has ended.
  class Slot {
   public:
    Slot(std::shared_ptr<Registered> of, SharedRowSegment::Slot slot);
    ~Slot();
    Slot(Slot&& other) = default;
    Slot& operator=(Slot&&) = delete;

   private:
    friend class SharedRows;
    std::shared_ptr<Registered> of_;  // null: moved from
    SharedRowSegment::Slot slot_;
  };

  // `connection` must outlive it. `key` is metadata (client/session_key.h).
  SharedRows(const ClientOptions& options, std::string key, Connection* connection);
  // Tells the server, without waiting long; a server that does not hear of it sees the lock go.
  ~SharedRows();

  // Registers a segment, of `client`, unless there is one; nothing when rows go in messages. As
  // DraftService.RegisterSharedMemory, FAILED_PRECONDITION also when `info` does not list it. OK
  // in any case once it has worked: what fails later costs speed and nothing else, and rows go in
  // messages.
  absl::Status Ensure(const v1::GetServerInfoResponse& info, const std::string& client,
                      absl::Time deadline);

  // Puts `rows` into `states`, as `manifest` says that they travel. Without a slot they are in the
  // message.
  std::optional<Slot> Encode(const HiddenRows& rows, const Manifest& manifest,
                             v1::HiddenStates* states);

  // Whether a call was refused for where its rows are and for nothing else: it can be sent again
  // with them in the message.
  static bool IsRefusal(const absl::Status& status);
  // The server refused `slot`: its segment is not used again, unless only too many calls wait. A
  // server that has lost it (it was started anew) gets another one, at the next call or opening.
  void Drop(const Slot& slot, const absl::Status& refusal, absl::Time deadline);

 private:
  absl::Status Register(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registering_);

  const ClientOptions options_;
  const std::string key_;
  Connection* const connection_;
  absl::Mutex registering_;  // held over a registration; before mutex_
  std::string client_ ABSL_GUARDED_BY(registering_);
  bool worked_ ABSL_GUARDED_BY(registering_) = false;
  absl::Mutex mutex_;
  std::shared_ptr<Registered> current_ ABSL_GUARDED_BY(mutex_);  // null: none
};

}  // namespace aerie
