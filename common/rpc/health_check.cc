#include "common/rpc/health_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/status_codec.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace aerie::rpc {
namespace {

// The service's two messages have one field each, number 1: the name asked for, the status. gRPC
// installs no header for them.
constexpr uint32_t kTextField = 0x0a, kEnumField = 0x08;
constexpr uint32_t kServing = 1;

grpc::ByteBuffer EncodeRequest(const std::string& service) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    if (!service.empty()) {
      out.WriteTag(kTextField);
      out.WriteVarint32(static_cast<uint32_t>(service.size()));
      out.WriteString(service);
    }
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<Health> DecodeResponse(grpc::ByteBuffer* response) {
  grpc::Slice slice;
  if (!response->DumpToSingleSlice(&slice).ok()) return absl::InternalError("no bytes came");
  google::protobuf::io::CodedInputStream in(slice.begin(), static_cast<int>(slice.size()));
  uint32_t status = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kEnumField || !in.ReadVarint32(&status)) {
      return absl::InternalError(
          "the answer is no grpc.health.v1.HealthCheckResponse; expected a gRPC server there; "
          "compare the address");
    }
  }
  return status == kServing ? Health::kServing : Health::kNotServing;
}

}  // namespace

absl::StatusOr<Health> CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                                   const std::string& service, absl::Time deadline) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  const grpc::ByteBuffer request = EncodeRequest(service);
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok()) return FromGrpcStatus(status);
  return DecodeResponse(&response);
}

}  // namespace aerie::rpc
