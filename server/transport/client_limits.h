// What one client may ask of the server at a time: rows a second, and bytes in calls that are not
// answered yet. Over all drafters, streams and connections.
//
// Who a client is, access_control.h says (AccountOf). A call that comes too early is refused before
// anything of it is decoded, so it costs the others nothing but its way through the network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "server/engine/round_observer.h"
#include "server/engine/row_bucket.h"

namespace aerie {

struct ClientLimitOptions {
  int32_t max_rows_per_second = 0;  // of one client's draft calls; 0: not limited
  int32_t row_burst = 0;            // that it may bring at once after a pause; 0: a second's
  int64_t max_bytes_in_flight = 0;  // of one client's unanswered requests; 0: not limited

  bool enabled() const { return max_rows_per_second > 0 || max_bytes_in_flight > 0; }
  int32_t burst() const { return row_burst > 0 ? row_burst : max_rows_per_second; }
  // INVALID_ARGUMENT that names flag and value. `max_message_bytes`: of one request.
  absl::Status Validate(int64_t max_message_bytes) const;
};

// Any thread. Whoever holds a Stay keeps it alive.
class ClientLimits : public std::enable_shared_from_this<ClientLimits> {
 public:
  // A request's bytes among those of its client; they leave with it.
  class Stay {
   public:
    Stay() = default;
    Stay(Stay&& other) noexcept { *this = std::move(other); }
    Stay& operator=(Stay&& other) noexcept;
    ~Stay() { Leave(); }
    void Leave();

   private:
    friend class ClientLimits;
    std::shared_ptr<ClientLimits> limits_;  // null: none are held
    std::string client_;
    int64_t bytes_ = 0;
  };

  // Reads the time from `now`; `options` must be valid.
  ClientLimits(const ClientLimitOptions& options, std::function<absl::Time()> now);

  // One request of `client` more. RESOURCE_EXHAUSTED, reason CLIENT_LIMIT, with a time to retry;
  // then `*reason` says how it is counted, and the request has taken nothing.
  absl::StatusOr<Stay> Admit(const std::string& client, int64_t bytes, int64_t rows,
                             RejectReason* reason);

  // That are remembered: those that have requests here, or have brought rows of late.
  size_t size() const;

 private:
  struct Client {
    int64_t bytes = 0;
    std::optional<RowBucket> rows;  // none: not limited
  };
  Client& Know(const std::string& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(const std::string& client, int64_t bytes);

  const ClientLimitOptions options_;
  const std::function<absl::Time()> now_;
  mutable Mutex mutex_;
  std::map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 64;  // clients
};

}  // namespace aerie
