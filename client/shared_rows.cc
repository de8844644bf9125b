#include "client/shared_rows.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "client/session_key.h"
#include "common/error_detail.h"
#include "common/float8.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

constexpr absl::Duration kGoodbye = absl::Milliseconds(200);

absl::Status CheckOffered(const v1::GetServerInfoResponse& info) {
  const auto& transports = info.transports();
  if (std::find(transports.begin(), transports.end(), v1::TRANSPORT_SHARED_MEMORY) !=
      transports.end()) {
    return absl::OkStatus();
  }
  return WithReason(
      absl::FailedPreconditionError(
          "the client's rows are to go through shared memory, which the server does not list among "
          "its transports; expected a server with --shared-memory, reached over a Unix socket or "
          "loopback; start it so, or use RowTravel::kInline"),
      kReasonSharedMemoryOff);
}

}  // namespace

SharedRows::Slot::Slot(std::shared_ptr<Registered> of, SharedRowSegment::Slot slot)
    : of_(std::move(of)), slot_(slot) {}

SharedRows::Slot::~Slot() {
  if (of_ != nullptr) of_->segment->Free(slot_);
}

SharedRows::SharedRows(const ClientOptions& options, std::string key, Connection* connection)
    : options_(options), key_(std::move(key)), connection_(connection) {}

SharedRows::~SharedRows() {
  absl::MutexLock lock(&mutex_);
  if (current_ == nullptr) return;
  v1::UnregisterSharedMemoryRequest request;
  request.set_segment_id(current_->id);
  const absl::Time deadline = absl::Now() + kGoodbye;
  connection_
      ->Run(
          deadline,
          [&] {
            grpc::ClientContext context;
            context.set_deadline(absl::ToChronoTime(deadline));
            AddSessionKey(key_, &context);
            v1::UnregisterSharedMemoryResponse response;
            return rpc::FromGrpcStatus(
                connection_->stub().UnregisterSharedMemory(&context, request, &response));
          },
          nullptr)
      .IgnoreError();
}

absl::Status SharedRows::Ensure(const v1::GetServerInfoResponse& info, const std::string& client,
                                absl::Time deadline) {
  if (options_.rows == RowTravel::kInline) return absl::OkStatus();
  absl::MutexLock registering(&registering_);
  {
    absl::MutexLock lock(&mutex_);
    if (current_ != nullptr) return absl::OkStatus();
  }
  client_ = client;
  absl::Status status = CheckOffered(info);
  if (status.ok()) status = Register(deadline);
  return worked_ ? absl::OkStatus() : status;
}

absl::Status SharedRows::Register(absl::Time deadline) {
  auto registered = std::make_shared<Registered>();
  AERIE_ASSIGN_OR_RETURN(registered->segment,
                         SharedRowSegment::Create(options_.shared_memory_bytes));
  v1::RegisterSharedMemoryRequest request;
  request.set_name(registered->segment->name());
  request.set_key(registered->segment->key());
  request.set_client(client_);
  AERIE_RETURN_IF_ERROR(connection_->Run(
      deadline,
      [&] {
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(deadline));
        AddSessionKey(key_, &context);
        v1::RegisterSharedMemoryResponse response;
        const absl::Status status = rpc::FromGrpcStatus(
            connection_->stub().RegisterSharedMemory(&context, request, &response));
        if (status.ok()) registered->id = response.segment_id();
        return status;
      },
      nullptr));
  registered->segment->Unlink();
  worked_ = true;
  absl::MutexLock lock(&mutex_);
  current_ = std::move(registered);
  return absl::OkStatus();
}

std::optional<SharedRows::Slot> SharedRows::Encode(const HiddenRows& rows, const Manifest& manifest,
                                                   v1::HiddenStates* states) {
  states->Clear();
  std::shared_ptr<Registered> registered;
  if (options_.rows == RowTravel::kSharedMemory) {
    absl::MutexLock lock(&mutex_);
    registered = current_;
  }
  if (registered == nullptr) {
    rpc::EncodeHiddenStates(rows, manifest, states);
    return std::nullopt;
  }
  std::string packed;
  if (manifest.fp8) packed = EncodeFp8(rows);
  const std::string_view bytes = manifest.fp8 ? std::string_view(packed) : rows.bytes();
  const std::optional<SharedRowSegment::Slot> slot = registered->segment->Put(bytes);
  if (!slot.has_value()) {
    rpc::EncodeHiddenStates(rows, manifest, states);
    return std::nullopt;
  }
  states->set_dtype(manifest.fp8 ? v1::DATA_TYPE_FLOAT8_E4M3FN : rpc::EncodeDType(rows.dtype()));
  states->set_fused(manifest.fused());
  v1::SharedRows& shared = *states->mutable_shared();
  shared.set_segment_id(registered->id);
  shared.set_offset(static_cast<uint64_t>(slot->offset));
  shared.set_length(static_cast<uint64_t>(slot->length));
  shared.set_stamp(slot->stamp);
  return std::optional<Slot>(std::in_place, std::move(registered), *slot);
}

bool SharedRows::IsRefusal(const absl::Status& status) {
  return absl::StartsWith(DetailOf(status).reason, "SHARED_MEMORY_");
}

void SharedRows::Drop(const Slot& slot, const absl::Status& refusal, absl::Time deadline) {
  // Too many calls wait; the segment is as good as it was.
  if (DetailOf(refusal).reason == kReasonSharedMemoryQuota) return;
  absl::MutexLock registering(&registering_);
  {
    absl::MutexLock lock(&mutex_);
    if (current_ != slot.of_) return;  // another thread has seen to it
    current_ = nullptr;
  }
  if (DetailOf(refusal).reason != kReasonSharedMemoryUnknown) return;
  // In vain: rows go in messages until a session opens, which tells what is wrong.
  Register(deadline).IgnoreError();
}

}  // namespace aerie
