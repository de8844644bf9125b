#include "server/transport/client_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/engine/refusals.h"

namespace aerie {
namespace {

// Names and addresses come from outside, so those that matter no more are forgotten now and then:
// when there are twice as many as were left the last time.
constexpr size_t kLeastRemembered = 64;

absl::Status Negative(const char* flag, int64_t value) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value,
                   "; expected 0 or more, 0 meaning no limit; leave it out for the default"));
}

}  // namespace

absl::Status ClientLimitOptions::Validate(int64_t max_message_bytes) const {
  if (max_rows_per_second < 0) {
    return Negative("--max-rows-per-second-per-client", max_rows_per_second);
  }
  if (row_burst < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--row-burst-per-client is ", row_burst,
                     "; expected 0 or more, 0 meaning the rows of one second; leave it out for the "
                     "default"));
  }
  if (row_burst > 0 && max_rows_per_second == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--row-burst-per-client is ", row_burst,
        " but --max-rows-per-second-per-client is 0; expected a rate to which the burst is an "
        "exception; give --max-rows-per-second-per-client, or leave --row-burst-per-client out"));
  }
  if (max_bytes_in_flight < 0) {
    return Negative("--max-bytes-in-flight-per-client", max_bytes_in_flight);
  }
  if (max_bytes_in_flight > 0 && max_bytes_in_flight < max_message_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-bytes-in-flight-per-client is ", max_bytes_in_flight,
                     " but --max-message-bytes is ", max_message_bytes,
                     "; expected room for one request at least; raise the one or lower the other"));
  }
  return absl::OkStatus();
}

ClientLimits::Stay& ClientLimits::Stay::operator=(Stay&& other) noexcept {
  Leave();
  limits_ = std::exchange(other.limits_, nullptr);
  client_ = std::move(other.client_);
  bytes_ = other.bytes_;
  return *this;
}

void ClientLimits::Stay::Leave() {
  if (limits_ != nullptr) std::exchange(limits_, nullptr)->Return(client_, bytes_);
}

ClientLimits::ClientLimits(const ClientLimitOptions& options, std::function<absl::Time()> now)
    : options_(options), now_(std::move(now)) {}

absl::StatusOr<ClientLimits::Stay> ClientLimits::Admit(const std::string& client, int64_t bytes,
                                                       int64_t rows, RejectReason* reason) {
  const MutexLock lock(&mutex_);
  const absl::Time now = now_();  // under the lock, so that it does not go back
  Forget(now);
  Client& known = Know(client);
  const int64_t most = options_.max_bytes_in_flight;
  if (most > 0 && bytes > most - known.bytes) {
    *reason = RejectReason::kClientBytes;
    return ClientBytesError(client, bytes, known.bytes, most);
  }
  if (known.rows.has_value()) {
    const absl::Duration wait = known.rows->Take(rows, now);
    if (wait > absl::ZeroDuration()) {
      *reason = RejectReason::kClientRows;
      return ClientRowsError(client, options_.max_rows_per_second, options_.burst(), wait);
    }
  }
  known.bytes += bytes;
  Stay stay;
  stay.limits_ = shared_from_this();
  stay.client_ = client;
  stay.bytes_ = bytes;
  return stay;
}

size_t ClientLimits::size() const {
  const MutexLock lock(&mutex_);
  return clients_.size();
}

ClientLimits::Client& ClientLimits::Know(const std::string& client) {
  auto [place, added] = clients_.try_emplace(client);
  if (added && options_.max_rows_per_second > 0) {
    place->second.rows.emplace(options_.max_rows_per_second, options_.burst());
  }
  return place->second;
}

void ClientLimits::Forget(absl::Time now) {
  if (clients_.size() < forget_at_) return;
  std::erase_if(clients_, [now](const auto& entry) {
    const Client& client = entry.second;
    return client.bytes == 0 && (!client.rows.has_value() || client.rows->IsFull(now));
  });
  forget_at_ = std::max(kLeastRemembered, 2 * clients_.size());
}

void ClientLimits::Return(const std::string& client, int64_t bytes) {
  const MutexLock lock(&mutex_);
  const auto found = clients_.find(client);
  AERIE_CHECK(found != clients_.end() && found->second.bytes >= bytes)
      << "client " << client << " holds fewer than " << bytes << " bytes";
  found->second.bytes -= bytes;
}

}  // namespace aerie
