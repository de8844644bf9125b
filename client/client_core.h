// What a client and its sessions share: connection, transport, and what the server said about
// itself.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/call_metadata.h"
#include "client/client_options.h"
#include "client/connection.h"
#include "client/draft_transport.h"
#include "client/shared_rows.h"

namespace aerie {

// Any thread.
class ClientCore {
 public:
  // `options` must be valid.
  ClientCore(std::string address, const ClientOptions& options);

  const ClientOptions& options() const { return options_; }
  // The deadline of a call that starts now.
  absl::Time Deadline() const;

  // Asks the server once and keeps the answer. FAILED_PRECONDITION: the server speaks another
  // protocol version.
  absl::StatusOr<std::shared_ptr<const v1::GetServerInfoResponse>> ServerInfo(absl::Time deadline);
  // The server may be another one by now (it restarted): ask again when next needed.
  void ForgetServerInfo();

  // One request and its answer. Repeated after a lost connection, so it must be safe to repeat.
  // Fills in the id. `attempts`, when given, grows by the number of tries.
  absl::StatusOr<v1::DraftStreamResponse> Exchange(std::shared_ptr<v1::DraftStreamRequest> request,
                                                   const CallMetadata& metadata,
                                                   absl::Time deadline, int* attempts);

  // Where the rows of calls are put.
  SharedRows& shared_rows() { return shared_rows_; }

  // The key of what belongs to no session.
  const std::string& key() const { return key_; }
  // The keys of this client's open sessions, by id: a fork must come to its parent's server.
  void RememberKey(const std::string& session_id, const std::string& key);
  void ForgetKey(const std::string& session_id);
  std::optional<std::string> KeyOf(const std::string& session_id);

 private:
  const ClientOptions options_;
  const std::string key_;
  Connection connection_;
  SharedRows shared_rows_;
  std::unique_ptr<DraftTransport> transport_;
  std::atomic<uint64_t> next_id_{1};
  absl::Mutex mutex_;
  std::shared_ptr<const v1::GetServerInfoResponse> info_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::string> keys_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
