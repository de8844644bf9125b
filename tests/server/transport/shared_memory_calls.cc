#include "tests/server/transport/shared_memory_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "tests/testing/status_matchers.h"

namespace aerie {

InProcessOptions Allowed() {
  InProcessOptions options;
  options.shared_memory.enabled = true;
  return options;
}

absl::StatusOr<v1::RegisterSharedMemoryResponse> Register(
    v1::DraftService::Stub& stub, const v1::RegisterSharedMemoryRequest& request) {
  grpc::ClientContext context;
  v1::RegisterSharedMemoryResponse response;
  const absl::Status status =
      rpc::FromGrpcStatus(stub.RegisterSharedMemory(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

std::string Registered(v1::DraftService::Stub& stub, const TestSegment& segment) {
  const auto response = Register(stub, segment.Registration());
  EXPECT_THAT(response, IsOk());
  return response.ok() ? response->segment_id() : "";
}

// `call` with its rows in a slot of `segment` at `offset`.
v1::DraftRequest Moved(v1::DraftRequest call, TestSegment& segment, const std::string& id,
                       int64_t offset, uint64_t stamp) {
  v1::HiddenStates& states = *call.mutable_hidden_states();
  *states.mutable_shared() = segment.Put(offset, states.data(), stamp);
  states.mutable_shared()->set_segment_id(id);
  states.clear_data();
  return call;
}

absl::Status Draft(v1::DraftService::Stub& stub, const v1::DraftRequest& call,
                   v1::DraftResponse* response) {
  grpc::ClientContext context;
  return rpc::FromGrpcStatus(stub.Draft(&context, call, response));
}

void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& reason,
                   const std::string& words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(DetailOf(status).reason, reason) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(words));
}

}  // namespace aerie
