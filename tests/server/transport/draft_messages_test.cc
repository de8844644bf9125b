// What the engine's values become on the wire, and what calls become for the engine.
#include "server/transport/draft_messages.h"

#include <string>
#include <vector>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<DraftCall> Decode(const v1::DraftRequest& request) {
  return DecodeDraftRequest(request, FakeSpec(), absl::UnixEpoch(),
                            absl::UnixEpoch() + absl::Seconds(2));
}

TEST(DraftMessagesTest, AReplySaysHowItsTokensWereChosen) {
  const std::vector<std::pair<ProposalMethod, v1::ProposalMethod>> methods = {
      {ProposalMethod::kGreedyChain, v1::PROPOSAL_METHOD_GREEDY_CHAIN},
      {ProposalMethod::kSampledChain, v1::PROPOSAL_METHOD_SAMPLED_CHAIN},
      {ProposalMethod::kGreedyTree, v1::PROPOSAL_METHOD_GREEDY_TREE},
      {ProposalMethod::kSampledTree, v1::PROPOSAL_METHOD_SAMPLED_TREE},
  };
  for (const auto& [method, on_the_wire] : methods) {
    DraftResult result;
    result.method = method;
    v1::DraftResponse response;
    EncodeDraftResult(result, &response);
    EXPECT_EQ(response.method(), on_the_wire);
  }
}

TEST(DraftMessagesTest, AReplySaysWhyItIsShort) {
  const std::vector<std::pair<NoDraftReason, v1::NoDraftReason>> reasons = {
      {NoDraftReason::kNone, v1::NO_DRAFT_REASON_UNSPECIFIED},
      {NoDraftReason::kNotAsked, v1::NO_DRAFT_REASON_NOT_ASKED},
      {NoDraftReason::kContextLimit, v1::NO_DRAFT_REASON_CONTEXT_LIMIT},
      {NoDraftReason::kDeadline, v1::NO_DRAFT_REASON_DEADLINE},
      {NoDraftReason::kNotWorthwhile, v1::NO_DRAFT_REASON_NOT_WORTHWHILE},
  };
  for (const auto& [reason, on_the_wire] : reasons) {
    DraftResult result;
    result.no_draft_reason = reason;
    v1::DraftResponse response;
    EncodeDraftResult(result, &response);
    EXPECT_EQ(response.no_draft_reason(), on_the_wire);
  }
}

TEST(DraftMessagesTest, ATreeHangsBehindTheSessionsRowsWithTheExtrasOfTheSession) {
  DraftResult result;
  result.length = 70;
  result.tree.tokens = {5, 6, 7};
  result.tree.parents = {0, 0, 2};
  result.tree.log_probs = {-1, -1, -1};
  v1::DraftResponse response;
  EncodeDraftResult(result, &response);
  EXPECT_THAT(response.tree().positions(), ElementsAre(71, 71, 72));
  EXPECT_EQ(response.tree().ancestor_mask(), "");
  EXPECT_FALSE(response.has_k_choice());

  result.extras = {.ancestor_mask = true, .links = true};
  response.Clear();
  EncodeDraftResult(result, &response);
  EXPECT_EQ(response.tree().ancestor_mask(), std::string("\x01\x03\x05\x0d"));
  EXPECT_THAT(response.tree().first_child(), ElementsAre(1, -1, 3, -1));
}

TEST(DraftMessagesTest, AChoiceOfKArrivesWhole) {
  DraftResult result;
  result.k_choice = KChoice{3, 2.5f, absl::Milliseconds(2), absl::Milliseconds(30), true};
  v1::DraftResponse response;
  EncodeDraftResult(result, &response);
  EXPECT_EQ(rpc::DecodeKChoice(response.k_choice()), *result.k_choice);
}

TEST(DraftMessagesTest, TheEarlierOfTimeLimitAndDeadlineEndsACall) {
  v1::DraftRequest request;
  request.set_session_id("s");
  const auto ends_after = [&request] { return Decode(request)->deadline - absl::UnixEpoch(); };
  EXPECT_EQ(ends_after(), absl::Seconds(2));
  rpc::EncodeDuration(absl::Milliseconds(1500), request.mutable_time_limit());
  EXPECT_EQ(ends_after(), absl::Milliseconds(1500));
  rpc::EncodeDuration(absl::Seconds(3), request.mutable_time_limit());
  EXPECT_EQ(ends_after(), absl::Seconds(2));
  for (const absl::Duration never : {absl::ZeroDuration(), absl::Seconds(-1)}) {
    rpc::EncodeDuration(never, request.mutable_time_limit());
    EXPECT_THAT(Decode(request).status(),
                Refuses(absl::StatusCode::kInvalidArgument, kReasonRequestInvalid));
  }
}

TEST(DraftMessagesTest, ACallBringsWhatVerificationTook) {
  v1::DraftRequest request;
  request.set_session_id("s");
  absl::StatusOr<DraftCall> call = Decode(request);
  ASSERT_THAT(call, IsOk());
  EXPECT_EQ(call->verify_time, std::nullopt);

  rpc::EncodeVerifyCost({absl::Microseconds(1500), 6}, request.mutable_verify_cost());
  call = Decode(request);
  ASSERT_THAT(call, IsOk());
  EXPECT_EQ(call->verify_time, absl::Microseconds(1500));
  EXPECT_EQ(call->verify_tokens, 6);
}

TEST(DraftMessagesTest, AnOpenedSessionTellsTheOptionsInForceAndWhereItBegins) {
  SessionOptions asked;
  asked.max_k = 99;
  asked.temperature = 0.5f;
  asked.seed = 3;
  asked.extras = {.ancestor_mask = true, .links = false};
  v1::OpenSessionResponse response;
  EncodeOpenResult(
      {.session_id = "s", .max_k = 16, .lease = absl::Seconds(9), .length = 40, .top_m = 61}, asked,
      &response);
  SessionOptions in_force = asked;
  in_force.max_k = 16;
  in_force.top_m = 61;
  EXPECT_EQ(rpc::DecodeSessionOptions(response.options()).value(), in_force);
  EXPECT_EQ(response.length(), 40u);
  EXPECT_EQ(response.session_id(), "s");
}

}  // namespace
}  // namespace aerie
