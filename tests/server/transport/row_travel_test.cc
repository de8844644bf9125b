// Rows that do not travel as captures in 16 or 32 bits: in fp8, and behind fc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "server/transport/draft_messages.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

Manifest Fp8Manifest() {
  Manifest manifest = FittingManifest();
  manifest.fp8 = true;
  return manifest;
}

std::string Open(v1::DraftService::Stub& stub, const Manifest& manifest) {
  v1::OpenSessionRequest request;
  rpc::EncodeManifest(manifest, request.mutable_manifest());
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  const grpc::Status status = stub.OpenSession(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.session_id();
}

// Five rows from row 0 on, encoded as `travels` says.
v1::DraftRequest Call(const std::string& session, const Manifest& travels) {
  v1::DraftRequest request;
  request.set_session_id(session);
  rpc::EncodeTokens({1, 2, 3, 4, 5}, request.mutable_token_ids());
  const OwnedRows rows = MakeRows(FittingManifest(), 0, 5, 7);
  rpc::EncodeHiddenStates(rows.view, travels, request.mutable_hidden_states());
  request.set_k(3);
  return request;
}

TEST(RowTravelTest, Fp8RowsDraftWhatTheirBfloat16ValuesDraft) {
  InProcessServer server;
  const v1::DraftRequest call = Call(Open(server.stub(), Fp8Manifest()), Fp8Manifest());
  grpc::ClientContext context;
  v1::DraftResponse response;
  const grpc::Status status = server.stub().Draft(&context, call, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto unpacked =
      rpc::DecodeHiddenStates(call.hidden_states(), 5, FittingManifest().row_width());
  ASSERT_THAT(unpacked, IsOk());
  EXPECT_EQ(rpc::DecodeDraftTree(response.tree()).value(),
            DraftAlone({1, 2, 3, 4, 5}, unpacked->rows, 3));
}

TEST(RowTravelTest, Fp8RowsOnAStreamOutliveTheirRequest) {
  InProcessServer server;
  Gate gate;
  const std::string session = Open(server.stub(), Fp8Manifest());
  const v1::DraftRequest call = Call(session, Fp8Manifest());
  grpc::ClientContext context;
  const auto stream = server.stub().DraftStream(&context);
  v1::DraftStreamRequest request;
  request.set_id(1);
  *request.mutable_draft() = call;
  ASSERT_TRUE(stream->Write(request));
  v1::DraftStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  const auto unpacked =
      rpc::DecodeHiddenStates(call.hidden_states(), 5, FittingManifest().row_width());
  EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(),
            DraftAlone({1, 2, 3, 4, 5}, unpacked->rows, 3));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

void ExpectRefused(InProcessServer& server, const v1::DraftRequest& call, const std::string& reason,
                   const std::string& words) {
  grpc::ClientContext context;
  v1::DraftResponse response;
  const absl::Status status = rpc::FromGrpcStatus(server.stub().Draft(&context, call, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status).reason, reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(RowTravelTest, ACallThatTravelsOtherwiseThanItsSessionIsRefused) {
  InProcessServer server;
  const std::string plain = Open(server.stub(), FittingManifest());
  const std::string fp8 = Open(server.stub(), Fp8Manifest());
  ExpectRefused(server, Call(plain, Fp8Manifest()), kReasonDType, "came as float8_e4m3fn");
  ExpectRefused(server, Call(fp8, FittingManifest()), kReasonDType, "came not as float8_e4m3fn");
}

TEST(RowTravelTest, Fp8RowsWithNaNAreRefusedByRow) {
  InProcessServer server;
  v1::DraftRequest call = Call(Open(server.stub(), Fp8Manifest()), Fp8Manifest());
  const auto row_bytes = static_cast<size_t>(Fp8Manifest().wire_row_bytes());
  std::string& data = *call.mutable_hidden_states()->mutable_data();
  data[2 * row_bytes + 4 + 1] = 0x7f;
  ExpectRefused(server, call, kReasonNonFinite, "row 2 (row 2 of the sequence)");
  data[3 * row_bytes + 3] = static_cast<char>(0xff);
  ExpectRefused(server, call, kReasonNonFinite, "row 3 has the scale");
}

TEST(RowTravelTest, FusedRowsNeedADrafterThatTakesThem) {
  InProcessServer server;
  Manifest manifest = FittingManifest();
  manifest.fused_width = 6;
  manifest.fc_digest = "abcd";
  v1::OpenSessionRequest request;
  rpc::EncodeManifest(manifest, request.mutable_manifest());
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  const absl::Status status =
      rpc::FromGrpcStatus(server.stub().OpenSession(&context, request, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fused.fc_digest is abcd"));
}

TEST(RowTravelTest, FusedRowsAreAsWideAsTheDraftersOwnStates) {
  DrafterSpec spec = FakeSpec();
  spec.hidden_size = 5;
  v1::DraftRequest request;
  request.set_session_id("s");
  rpc::EncodeTokens({1, 2}, request.mutable_token_ids());
  request.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_FLOAT32);
  request.mutable_hidden_states()->set_fused(true);
  request.mutable_hidden_states()->set_data(std::string(2 * 5 * 4, '\0'));
  const auto call = DecodeDraftRequest(request, spec, absl::Now(), absl::InfiniteFuture());
  ASSERT_THAT(call, IsOk());
  EXPECT_TRUE(call->fused);
  EXPECT_EQ(call->rows.width(), 5);
  request.mutable_hidden_states()->set_fused(false);
  EXPECT_EQ(
      DetailOf(DecodeDraftRequest(request, spec, absl::Now(), absl::InfiniteFuture()).status())
          .reason,
      kReasonByteCount);
}

}  // namespace
}  // namespace aerie
