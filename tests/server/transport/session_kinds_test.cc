// Sessions of every kind over a real channel: trees, sampling, forks, starts, quotas, evictions.
// What they draft is compared with a plain replay; the search itself is the engine's tests' matter.
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

SessionOptions Tree() {
  SessionOptions options;
  options.tree = TreeShape{.depth = 3, .top_k = 3, .total_tokens = 9};
  return options;
}

SessionOptions Sampled(SessionOptions options) {
  options.temperature = 0.8f;
  options.top_m = 12;
  options.seed = 5;
  options.probs = ProposalProbs::kTopM;
  return options;
}

absl::Status TryOpen(v1::DraftService::Stub& stub, const TestSequence& sequence,
                     v1::OpenSessionResponse* response) {
  grpc::ClientContext context;
  return rpc::FromGrpcStatus(stub.OpenSession(&context, sequence.OpenRequest(), response));
}

absl::Status TryDraft(v1::DraftService::Stub& stub, const v1::DraftRequest& request,
                      v1::DraftResponse* response) {
  grpc::ClientContext context;
  return rpc::FromGrpcStatus(stub.Draft(&context, request, response));
}

TEST(SessionKindsTest, TreesAndSampledDraftsArriveAsTheyWereMade) {
  InProcessServer server;
  uint64_t id = 0;
  for (const SessionOptions& options :
       {Tree(), Sampled(Tree()), Sampled(SessionOptions()), SessionOptions()}) {
    TestSequence unary(++id, options);
    OpenUnary(server.stub(), &unary);
    ExpectRightDraft(server.stub(), &unary, 5, 9);
    ExpectRightDraft(server.stub(), &unary, 2, 9);
    TestStream stream(server.stub());
    TestSequence streamed(++id, options);
    stream.Open(&streamed);
    stream.ExpectRightDraft(&streamed, 5, 9);
    stream.ExpectRightDraft(&streamed, 1, 9);
  }
}

TEST(SessionKindsTest, TheReplySaysTheMethodAndCarriesDistributionsMaskAndLinks) {
  InProcessServer server;
  SessionOptions options = Sampled(Tree());
  options.extras = {.ancestor_mask = true, .links = true};
  TestSequence sequence(1, options);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(TryOpen(server.stub(), sequence, &opened), IsOk());
  EXPECT_EQ(opened.options().sampling().top_m(), 12u);
  EXPECT_TRUE(opened.options().extras().ancestor_mask());
  EXPECT_EQ(opened.options().tree().total_tokens(), 9u);
  sequence.session_id = opened.session_id();
  v1::DraftResponse reply;
  ASSERT_THAT(TryDraft(server.stub(), sequence.NextRequest(6, 9), &reply), IsOk());
  EXPECT_EQ(reply.method(), v1::PROPOSAL_METHOD_SAMPLED_TREE);
  const DraftTree tree = rpc::DecodeDraftTree(reply.tree()).value();
  EXPECT_EQ(tree.size(), 9);
  EXPECT_THAT(tree.distributions, Not(IsEmpty()));
  EXPECT_EQ(reply.tree().ancestor_mask(), tree.AncestorMask());
  EXPECT_THAT(reply.tree().first_child(), SizeIs(10));
  EXPECT_EQ(reply.tree().positions(0), 7u);

  // A call without a draft has the extras of a tree that is its root alone.
  sequence.Commit(6);
  ASSERT_THAT(TryDraft(server.stub(), sequence.NextRequest(1, 0), &reply), IsOk());
  EXPECT_EQ(reply.tree().ancestor_mask(), "\x01");
  EXPECT_THAT(reply.tree().first_child(), ElementsAre(-1));
}

TEST(SessionKindsTest, AStatelessCallIsAGreedyChain) {
  InProcessServer server;
  TestSequence sequence(3);
  v1::DraftRequest request = sequence.NextRequest(6, 4);
  rpc::EncodeManifest(FittingManifest(), request.mutable_manifest());
  v1::DraftResponse reply;
  ASSERT_THAT(TryDraft(server.stub(), request, &reply), IsOk());
  EXPECT_EQ(reply.method(), v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  EXPECT_EQ(reply.tree().ancestor_mask(), "");
}

TEST(SessionKindsTest, AForkGoesOnWhereItsParentWasAndLeavesItAlone) {
  InProcessServer server;
  TestSequence parent(1);
  OpenUnary(server.stub(), &parent);
  ExpectRightDraft(server.stub(), &parent, 10, 3);
  TestSequence fork = parent.Forked(6);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(TryOpen(server.stub(), fork, &opened), IsOk());
  EXPECT_EQ(opened.length(), 6u);
  fork.session_id = opened.session_id();
  ExpectRightDraft(server.stub(), &fork, 2, 4);
  ExpectRightDraft(server.stub(), &parent, 1, 4);
  EXPECT_GT(server.observer().kv_usages().back().pages_shared, 0);

  TestSequence longer = parent.Forked(6);
  v1::OpenSessionRequest request = longer.OpenRequest();
  request.mutable_fork()->set_length(12);
  grpc::ClientContext context;
  EXPECT_THAT(rpc::FromGrpcStatus(server.stub().OpenSession(&context, request, &opened)),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonForkInvalid));
}

TEST(SessionKindsTest, AStartCountsAsPositionsAndIsNotAskedFor) {
  InProcessServer server;
  SessionOptions options;
  options.start = 1000;
  TestSequence sequence(1, options);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(TryOpen(server.stub(), sequence, &opened), IsOk());
  EXPECT_EQ(opened.length(), 1000u);
  sequence.session_id = opened.session_id();
  v1::DraftResponse reply;
  ASSERT_THAT(TryDraft(server.stub(), sequence.NextRequest(3, 2), &reply), IsOk());
  sequence.Commit(3);
  EXPECT_EQ(reply.length(), 1003u);
  EXPECT_THAT(reply.tree().positions(), ElementsAre(1004, 1005));
  EXPECT_EQ(rpc::DecodeDraftTree(reply.tree()).value(), sequence.Expected(2));
  ExpectRightDraft(server.stub(), &sequence, 1, 3);
}

TEST(SessionKindsTest, ASessionThatMadeRoomIsToldWhereToResendFrom) {
  InProcessOptions options;
  options.engine.max_context = 40;
  options.model.kv_store.num_pages = 16;  // of 4 rows: one full session and a little
  InProcessServer server(options);
  TestSequence idle(1);
  TestSequence busy(2);
  OpenUnary(server.stub(), &idle);
  OpenUnary(server.stub(), &busy);
  ExpectRightDraft(server.stub(), &idle, 30, 2);
  ExpectRightDraft(server.stub(), &busy, 38, 2);
  EXPECT_THAT(server.observer().evicted(), ElementsAre(30));
  v1::DraftResponse reply;
  const absl::Status status = TryDraft(server.stub(), idle.NextRequest(1, 2), &reply);
  EXPECT_THAT(status, Refuses(absl::StatusCode::kFailedPrecondition, kReasonEvicted));
  EXPECT_EQ(DetailOf(status).resend_from, 0);

  TestSequence again(1);
  again.session_id = idle.session_id;
  ExpectRightDraft(server.stub(), &again, 31, 2);
}

TEST(SessionKindsTest, OneClientsQuotaIsNotAnothersBusiness) {
  InProcessOptions options;
  options.engine.max_sessions_per_client = 2;
  InProcessServer server(options);
  SessionOptions blue;
  blue.client = "blue";
  v1::OpenSessionResponse opened;
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_THAT(TryOpen(server.stub(), TestSequence(id, blue), &opened), IsOk());
  }
  const absl::Status full = TryOpen(server.stub(), TestSequence(3, blue), &opened);
  EXPECT_THAT(full, Refuses(absl::StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_TRUE(DetailOf(full).retry_after.has_value());
  EXPECT_THAT(TryOpen(server.stub(), TestSequence(4), &opened), IsOk()) << "the nameless client";
}

}  // namespace
}  // namespace aerie
