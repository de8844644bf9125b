#include "client/stream_transport.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "client/client_stream.h"

namespace aerie {
namespace {

// A server answers a half-close at once; one that does not is cancelled.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);

}  // namespace

StreamTransport::~StreamTransport() {
  absl::MutexLock lock(&mutex_);
  if (stream_ != nullptr) retired_.push_back(std::move(stream_));
  const absl::Time deadline = absl::Now() + kGoodbye;
  for (const auto& stream : retired_) stream->Finish(deadline);
}

absl::StatusOr<v1::DraftStreamResponse> StreamTransport::Exchange(
    std::shared_ptr<const v1::DraftStreamRequest> request, const CallMetadata& /*metadata*/,
    absl::Time deadline) {
  return Current()->Exchange(std::move(request), deadline);
}

std::shared_ptr<ClientStream> StreamTransport::Current() {
  absl::MutexLock lock(&mutex_);
  if (stream_ != nullptr && stream_->IsBroken()) retired_.push_back(std::move(stream_));
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(),
                                [](const auto& stream) { return stream->IsDone(); }),
                 retired_.end());
  if (stream_ == nullptr) stream_ = std::make_shared<ClientStream>(connection_->stub(), key_);
  return stream_;
}

}  // namespace aerie
