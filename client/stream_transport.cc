#include "client/stream_transport.h"

#include "absl/time/clock.h"
#include "client/draft_stream.h"

namespace aerie {
namespace {

// A server answers a half-close at once; one that does not is cancelled.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);

}  // namespace

StreamTransport::~StreamTransport() {
  std::shared_ptr<DraftStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    stream = std::move(stream_);
  }
  if (stream != nullptr) stream->Finish(absl::Now() + kGoodbye);
}

absl::StatusOr<v1::DraftStreamResponse> StreamTransport::Exchange(
    std::shared_ptr<const v1::DraftStreamRequest> request, absl::Time deadline) {
  return Current()->Exchange(std::move(request), deadline);
}

std::shared_ptr<DraftStream> StreamTransport::Current() {
  absl::MutexLock lock(&mutex_);
  if (stream_ == nullptr || stream_->IsBroken()) {
    stream_ = DraftStream::Start(connection_->stub());
  }
  return stream_;
}

}  // namespace aerie
