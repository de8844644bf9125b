// What opens a session on the wire, and which requests a server refuses before it looks at itself.
#include "common/rpc/session_codec.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/rpc/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie::rpc {
namespace {

using ::testing::HasSubstr;

// Values that are all different, so that no two fields can be swapped unseen.
SessionOptions SampledTree() {
  SessionOptions options;
  options.max_k = 11;
  options.tree = TreeShape{.depth = 3, .top_k = 4, .total_tokens = 10};
  options.temperature = 0.5f;
  options.top_m = 20;
  options.seed = 99;
  options.probs = ProposalProbs::kTopM;
  options.extras = {.ancestor_mask = false, .links = true};
  options.client = "blue";
  return options;
}

v1::OpenSessionRequest SampledTreeMessage() {
  v1::OpenSessionRequest request;
  EncodeOpening(SampledTree(), &request);
  return request;
}

TEST(OpeningCodecTest, HasTheKnownBytes) {
  EXPECT_EQ(absl::BytesToHexString(SampledTreeMessage().SerializeAsString()),
            "121b"                        // options
            "080b"                        // max_k 11
            "120608031004180a"            // tree 3, 4, 10
            "1a0b0d0000003f101418632002"  // sampling 0.5, 20, 99, TOP_M
            "22021001"                    // links
            "2a04626c7565");              // client "blue"
}

TEST(OpeningCodecTest, ComesBackAsItWent) {
  SessionOptions forked = SampledTree();
  forked.fork_of = "parent";
  forked.fork_length = 17;
  SessionOptions adaptive;
  adaptive.adaptive_k = true;
  adaptive.start = 1000;
  adaptive.acceptance_detail = true;
  adaptive.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  adaptive.extras = {.ancestor_mask = true, .links = false};
  SessionOptions chosen;
  chosen.temperature = 1.5f;
  chosen.probs = ProposalProbs::kChosen;
  for (const SessionOptions& options :
       {SampledTree(), forked, adaptive, chosen, SessionOptions()}) {
    v1::OpenSessionRequest request;
    EncodeOpening(options, &request);
    const absl::StatusOr<SessionOptions> back = DecodeOpening(request);
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(*back, options);
  }
}

TEST(OpeningCodecTest, TheOptionsInForceAreThoseWithoutABeginning) {
  v1::SessionOptions message;
  EncodeSessionOptions(SampledTree(), &message);
  SessionOptions expected = SampledTree();
  expected.client.clear();
  EXPECT_EQ(DecodeSessionOptions(message).value(), expected);
}

TEST(OpeningCodecTest, AMaxKAboveEveryServersIsNoContradiction) {
  v1::OpenSessionRequest request;
  request.mutable_options()->set_max_k(0xffffffffu);
  EXPECT_EQ(DecodeOpening(request)->max_k, std::numeric_limits<int32_t>::max());
}

struct BadOpeningCase {
  std::string name;
  void (*spoil)(v1::OpenSessionRequest*);
  std::string message;
};

class BadOpeningTest : public ::testing::TestWithParam<BadOpeningCase> {};

TEST_P(BadOpeningTest, IsRefusedWithTheFieldNamed) {
  v1::OpenSessionRequest request = SampledTreeMessage();
  ASSERT_THAT(DecodeOpening(request), IsOk());
  GetParam().spoil(&request);
  const absl::Status status = DecodeOpening(request).status();
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

v1::Sampling* SamplingOf(v1::OpenSessionRequest* request) {
  return request->mutable_options()->mutable_sampling();
}
v1::TreeShape* TreeOf(v1::OpenSessionRequest* request) {
  return request->mutable_options()->mutable_tree();
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadOpeningTest,
    ::testing::ValuesIn(std::vector<BadOpeningCase>{
        {"TemperatureZero", [](v1::OpenSessionRequest* r) { SamplingOf(r)->set_temperature(0); },
         "options.sampling.temperature is 0; expected above 0; leave sampling unset"},
        {"TemperatureMinusZero",
         [](v1::OpenSessionRequest* r) { SamplingOf(r)->set_temperature(-0.0f); },
         "options.sampling.temperature is 0"},
        {"TemperatureNegative",
         [](v1::OpenSessionRequest* r) { SamplingOf(r)->set_temperature(-1); },
         "options.sampling.temperature is -1"},
        {"TemperatureNaN",
         [](v1::OpenSessionRequest* r) { SamplingOf(r)->set_temperature(std::nanf("")); },
         "options.sampling.temperature is nan"},
        {"TopMBeyondInt32",
         [](v1::OpenSessionRequest* r) { SamplingOf(r)->set_top_m(0x80000000u); },
         "options.sampling.top_m is 2147483648"},
        {"UnknownProposalProbs",
         [](v1::OpenSessionRequest* r) {
           SamplingOf(r)->set_proposal_probs(static_cast<v1::ProposalProbs>(7));
         },
         "options.sampling.proposal_probs is 7"},
        {"EmptyTree", [](v1::OpenSessionRequest* r) { TreeOf(r)->Clear(); },
         "options.tree.depth is 0"},
        {"TreeOfWidthOne", [](v1::OpenSessionRequest* r) { TreeOf(r)->set_top_k(1); },
         "options.tree.top_k is 1; expected 2 or more, since a tree of width 1 is a chain; leave "
         "tree unset"},
        {"DepthBeyondInt32", [](v1::OpenSessionRequest* r) { TreeOf(r)->set_depth(0x80000000u); },
         "options.tree.depth is 2147483648"},
        {"TopKBeyondInt32", [](v1::OpenSessionRequest* r) { TreeOf(r)->set_top_k(0x80000000u); },
         "options.tree.top_k is 2147483648"},
        {"TokensBeyondInt32",
         [](v1::OpenSessionRequest* r) { TreeOf(r)->set_total_tokens(0x80000000u); },
         "options.tree.total_tokens is 2147483648"},
        {"AdaptiveTree",
         [](v1::OpenSessionRequest* r) { r->mutable_options()->set_adaptive_k(true); },
         "options.adaptive_k and options.tree"},
        {"ForkWithoutASession", [](v1::OpenSessionRequest* r) { r->mutable_fork()->set_length(3); },
         "fork.session_id is empty"},
        {"ForkAndStart",
         [](v1::OpenSessionRequest* r) {
           r->mutable_fork()->set_session_id("parent");
           r->set_start(5);
         },
         "fork is set and start is 5"},
        {"LongClient", [](v1::OpenSessionRequest* r) { r->set_client(std::string(65, 'c')); },
         "client has 65 bytes; expected at most 64"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(VerifyCostCodecTest, ComesBackAsItWentAndMustTakeTime) {
  const VerifyCost cost = {absl::Microseconds(1500), 6};
  v1::VerifyCost message;
  EncodeVerifyCost(cost, &message);
  EXPECT_EQ(DecodeVerifyCost(message).value(), cost);
  for (const absl::Duration time :
       {absl::ZeroDuration(), -absl::Nanoseconds(1), -absl::Seconds(3)}) {
    EncodeDuration(time, message.mutable_time());
    const absl::Status status = DecodeVerifyCost(message).status();
    EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, kReasonRequestInvalid));
    EXPECT_THAT(std::string(status.message()), HasSubstr("verify_cost.time is "));
  }
}

TEST(KChoiceCodecTest, ComesBackAsItWent) {
  const KChoice choice = {3, 2.5f, absl::Microseconds(700), absl::Milliseconds(9), true};
  v1::KChoice message;
  EncodeKChoice(choice, &message);
  EXPECT_EQ(message.k(), 3u);
  EXPECT_EQ(DecodeKChoice(message), choice);
}

}  // namespace
}  // namespace aerie::rpc
