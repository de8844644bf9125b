// What a null server answers, without the wire: the same tokens to every draft, and records that
// are right.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "aerie/v1/draft.pb.h"
#include "client/loadtest/null_server.h"
#include "common/acceptance_record.h"

namespace aerie::loadtest {

// Any thread.
class NullDrafter {
 public:
  explicit NullDrafter(const NullServerOptions& options) : options_(options) {}

  void Info(v1::GetServerInfoResponse* response) const;
  // INVALID_ARGUMENT: a tree, sampling or a fork.
  absl::Status Open(const v1::OpenSessionRequest& request, v1::OpenSessionResponse* response);
  // NOT_FOUND: no such session, as Close.
  absl::Status Draft(const v1::DraftRequest& request, v1::DraftResponse* response);
  absl::Status Close(const v1::CloseSessionRequest& request, v1::CloseSessionResponse* response);
  // Any of these, as a stream says it.
  void Answer(const v1::DraftStreamRequest& request, v1::DraftStreamResponse* response);

 private:
  struct Session {
    AcceptanceRecord record;
    int32_t pending = 0;  // tokens of the proposal that is not judged yet: 1, 2, ...
    bool drafted = false;
  };

  static int32_t Commit(const google::protobuf::RepeatedField<uint32_t>& tokens, Session* session);

  const NullServerOptions options_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  int64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace aerie::loadtest
