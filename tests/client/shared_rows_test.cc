// Rows of the C++ client in shared memory: before the real service, and before one that loses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/draft_client.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/session_fixture.h"
#include "tests/client/test_server.h"
#include "tests/client/worker.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

ClientOptions Sharing(TransportKind transport) {
  ClientOptions options;
  options.transport = transport;
  options.deadline = absl::Seconds(60);
  options.rows = RowTravel::kSharedMemory;
  options.shared_memory_bytes = 64 << 10;
  return options;
}

class SharedRowsTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  static InProcessOptions Allowed() {
    InProcessOptions options;
    options.shared_memory.enabled = true;
    return options;
  }

  // Drafts once from so many rows, checks the draft, and gives the bytes that its message took.
  static int64_t BytesOfADraft(InProcessServer& server, DraftSession& session, int rows) {
    const std::vector<int32_t> tokens(static_cast<size_t>(rows), 5);
    const OwnedRows states = MakeRows(FittingManifest(), 0, rows, 7);
    const DraftOutcome outcome = session.Draft({.tokens = tokens, .rows = states.view, .k = 3});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.tree, DraftAlone(tokens, states.view, 3));
    const char* const method = GetParam() == TransportKind::kUnary ? "Draft" : "DraftStream";
    return server.rpcs().Of(method).received_bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, SharedRowsTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         TransportName);

TEST_P(SharedRowsTest, DraftWhatTheyDraftInTheMessage) {
  InProcessServer server(Allowed());
  {
    auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
    ASSERT_TRUE(client.ok());
    auto session = (*client)->Open(FittingManifest(), {});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(server.shared_memory().segments(), 1);
    EXPECT_LT(BytesOfADraft(server, **session, 300), 2000);  // of 14,400 bytes of rows
  }
  EXPECT_EQ(server.shared_memory().segments(), 0);
}

TEST_P(SharedRowsTest, GoInTheMessageWhereTheyFindNoRoom) {
  InProcessServer server(Allowed());
  auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
  ASSERT_TRUE(client.ok());
  auto session = (*client)->Open(FittingManifest(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_GT(BytesOfADraft(server, **session, 1400), 67200);  // of 67,200 bytes of rows
}

TEST_P(SharedRowsTest, AreRefusedByReasonWhereTheServerTakesNone) {
  InProcessServer server;
  auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
  ASSERT_TRUE(client.ok());
  const auto session = (*client)->Open(FittingManifest(), {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(session.status()).reason, kReasonSharedMemoryOff);
  EXPECT_THAT(std::string(session.status().message()), ::testing::HasSubstr("--shared-memory"));
}

// Knows no segment that it has given an id to.
class ForgetfulService : public FakeDraftService {
 public:
  ForgetfulService() {
    before_draft = [this](const v1::DraftRequest& request) -> absl::Status {
      if (!request.hidden_states().has_shared()) return absl::OkStatus();
      ++refused;
      return WithReason(absl::FailedPreconditionError("no such segment"), reason);
    };
  }
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override {
    const grpc::Status status = FakeDraftService::GetServerInfo(context, request, response);
    if (offers) response->add_transports(v1::TRANSPORT_SHARED_MEMORY);
    return status;
  }
  grpc::Status RegisterSharedMemory(grpc::ServerContext*, const v1::RegisterSharedMemoryRequest*,
                                    v1::RegisterSharedMemoryResponse* response) override {
    response->set_segment_id(absl::StrCat("segment-", ++registered));
    return grpc::Status::OK;
  }
  std::string reason = kReasonSharedMemoryUnknown;
  std::atomic<bool> offers = true;
  std::atomic<int> registered = 0, refused = 0;
};

TEST_P(SharedRowsTest, AreSentAgainInTheMessageAndTheSegmentIsReplacedWhenTheServerHasLostIt) {
  ForgetfulService service;
  TestServer server(&service);
  auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
  ASSERT_TRUE(client.ok());
  auto session = (*client)->Open(FakeDraftService::FittingManifest(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  const Manifest manifest = FakeDraftService::FittingManifest();
  for (int64_t row = 0; row < 3; ++row) {
    const OwnedRows rows = MakeRows(manifest, row, 1, 7);
    const std::vector<int32_t> tokens = {5};
    const DraftOutcome outcome =
        (*session)->Draft({.base_length = row, .tokens = tokens, .rows = rows.view, .k = 2});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.length, row + 1);
    EXPECT_EQ(outcome.resyncs, 0);
    EXPECT_EQ(service.refused, row + 1);
    EXPECT_EQ(service.registered, row + 2);
  }
  EXPECT_EQ(service.Sessions().begin()->second.bytes, *MakeRows(manifest, 0, 3, 7).bytes);
}

TEST_P(SharedRowsTest, GoInMessagesUntilASessionOpensWhenTheyAreRefusedOtherwise) {
  ForgetfulService service;
  service.reason = kReasonSharedMemoryBounds;
  TestServer server(&service);
  auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
  ASSERT_TRUE(client.ok());
  auto session = (*client)->Open(FakeDraftService::FittingManifest(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int64_t row = 0; row < 3; ++row) {
    const OwnedRows rows = MakeRows(FakeDraftService::FittingManifest(), row, 1, 7);
    const std::vector<int32_t> tokens = {5};
    const DraftOutcome outcome =
        (*session)->Draft({.base_length = row, .tokens = tokens, .rows = rows.view, .k = 2});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  }
  EXPECT_EQ(service.refused, 1);
  EXPECT_EQ(service.registered, 1);
  ASSERT_TRUE((*client)->Open(FakeDraftService::FittingManifest(), {}).ok());
  EXPECT_EQ(service.registered, 2);
}

TEST_P(SharedRowsTest, GoInMessagesWhenTheNextServerTakesNone) {
  ForgetfulService service;
  service.reason = kReasonSharedMemoryBounds;
  TestServer server(&service);
  auto client = DraftClient::Create(server.address(), Sharing(GetParam()));
  ASSERT_TRUE(client.ok());
  auto session = (*client)->Open(FakeDraftService::FittingManifest(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  service.offers = false;
  service.ForgetSessions();
  for (int64_t row = 0; row < 2; ++row) {
    const OwnedRows rows = MakeRows(FakeDraftService::FittingManifest(), row, 1, 7);
    const std::vector<int32_t> tokens = {5};
    const DraftOutcome outcome =
        (*session)->Draft({.base_length = row, .tokens = tokens, .rows = rows.view, .k = 2});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  }
  EXPECT_EQ(service.registered, 1);
}

}  // namespace
}  // namespace aerie
