// Every call that a client can get wrong: its code, its reason, a message of three parts, and that
// neither the session itself nor any other notices.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kMaxRowsPerCall = 20;
constexpr int kMaxK = 9;

InProcessOptions Options() {
  InProcessOptions options;
  options.engine.max_k = kMaxK;
  options.engine.max_rows_per_call = kMaxRowsPerCall;
  options.limits.max_message_bytes = 64 << 10;
  return options;
}

absl::Status Draft(v1::DraftService::Stub& stub, const v1::DraftRequest& request) {
  grpc::ClientContext context;
  v1::DraftResponse response;
  return rpc::FromGrpcStatus(stub.Draft(&context, request, &response));
}

void SetFloat(v1::DraftRequest* request, size_t row, size_t column, float value) {
  std::memcpy(request->mutable_hidden_states()->mutable_data()->data() + (row * 12 + column) * 4,
              &value, sizeof(value));
}

struct BadDraftCase {
  std::string name;
  void (*spoil)(v1::DraftRequest*);  // a good call: rows 4..6 of a session of 4 rows, k = 3, seq 2
  absl::StatusCode code;
  std::string reason;
  std::string message;
};

class BadDraftTest : public ::testing::TestWithParam<BadDraftCase> {};

TEST_P(BadDraftTest, IsRefusedAndLeavesEverySessionAsItWas) {
  InProcessServer server(Options());
  TestSequence victim(1);
  TestSequence bystander(2);
  OpenUnary(server.stub(), &victim);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &bystander, 3, 4);
  v1::DraftRequest first = victim.NextRequest(4, 2);
  first.set_seq(1);
  ASSERT_THAT(Draft(server.stub(), first), IsOk());
  victim.Commit(4);

  v1::DraftRequest bad = victim.NextRequest(3, 3);
  bad.set_seq(2);
  GetParam().spoil(&bad);
  const absl::Status status = Draft(server.stub(), bad);
  EXPECT_THAT(status, Refuses(GetParam().code, GetParam().reason));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));

  ExpectRightDraft(server.stub(), &bystander, 2, 5);
  v1::DraftRequest good = victim.NextRequest(3, 3);
  good.set_seq(2);
  grpc::ClientContext context;
  v1::DraftResponse response;
  ASSERT_TRUE(server.stub().Draft(&context, good, &response).ok());
  victim.Commit(3);
  EXPECT_EQ(rpc::DecodeDraftTree(response.tree()).value(), victim.Expected(3));
  EXPECT_EQ(response.length(), 7u);
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
INSTANTIATE_TEST_SUITE_P(
    Cases, BadDraftTest,
    ::testing::ValuesIn(std::vector<BadDraftCase>{
        {"OneByteShort",
         [](v1::DraftRequest* r) { r->mutable_hidden_states()->mutable_data()->pop_back(); },
         kInvalid, kReasonByteCount, "143 bytes; expected 144"},
        {"OneRowTooMany",
         [](v1::DraftRequest* r) { r->mutable_hidden_states()->mutable_data()->append(48, '\0'); },
         kInvalid, kReasonByteCount, "192 bytes; expected 144"},
        {"NoStatesAtAll", [](v1::DraftRequest* r) { r->mutable_hidden_states()->clear_data(); },
         kInvalid, kReasonByteCount, "0 bytes; expected 144"},
        {"StatesWithoutTokens", [](v1::DraftRequest* r) { r->clear_token_ids(); }, kInvalid,
         kReasonByteCount, "144 bytes; expected 0"},
        {"OneStateOfThreeBoundaries",  // a buffer that was sized for one capture
         [](v1::DraftRequest* r) { r->mutable_hidden_states()->mutable_data()->resize(48); },
         kInvalid, kReasonByteCount, "48 bytes; expected 144"},
        {"AnotherDTypeThanTheSession",
         [](v1::DraftRequest* r) {
           r->mutable_hidden_states()->set_dtype(v1::DATA_TYPE_BFLOAT16);
           r->mutable_hidden_states()->mutable_data()->assign(72, '\0');
         },
         kInvalid, kReasonDType, "bfloat16"},
        {"NoDType", [](v1::DraftRequest* r) { r->mutable_hidden_states()->clear_dtype(); },
         kInvalid, kReasonDType, "hidden_states.dtype is 0"},
        {"TokenOfTheVocabularySize", [](v1::DraftRequest* r) { r->set_token_ids(2, 101); },
         kInvalid, kReasonTokenOutOfRange, "token_ids[2] is 101; expected 0..100"},
        {"PaddingToken", [](v1::DraftRequest* r) { r->set_token_ids(0, 0xffffffffu); }, kInvalid,
         kReasonTokenOutOfRange, "token_ids[0] is 4294967295"},
        {"NaN",
         [](v1::DraftRequest* r) {
           SetFloat(r, 1, 5, std::numeric_limits<float>::quiet_NaN());
         },
         kInvalid, kReasonNonFinite, "row 1 (row 5 of the sequence) holds a NaN or infinite value "
         "in boundary 4, element 1"},
        {"Infinity",
         [](v1::DraftRequest* r) { SetFloat(r, 2, 11, -std::numeric_limits<float>::infinity()); },
         kInvalid, kReasonNonFinite, "row 2 (row 6 of the sequence)"},
        {"VerificationThatTookNoTime", [](v1::DraftRequest* r) { r->mutable_verify_cost(); },
         kInvalid, kReasonRequestInvalid, "verify_cost.time is 0"},
        {"VerificationThatTookLessThanNoTime",
         [](v1::DraftRequest* r) { r->mutable_verify_cost()->mutable_time()->set_seconds(-1); },
         kInvalid, kReasonRequestInvalid, "verify_cost.time is -1s"},
        {"Gap", [](v1::DraftRequest* r) { r->set_base_length(5); },
         absl::StatusCode::kFailedPrecondition, kReasonBaseLengthAhead, "resend from"},
        {"GapAtTheEndOfInt32", [](v1::DraftRequest* r) { r->set_base_length(0xffffffffu); },
         absl::StatusCode::kFailedPrecondition, kReasonBaseLengthAhead, "4294967295"},
        {"UnknownSession", [](v1::DraftRequest* r) { r->set_session_id("no-such-session"); },
         absl::StatusCode::kNotFound, kReasonSessionUnknown, "no-such-session"},
        {"NoSequence", [](v1::DraftRequest* r) { r->clear_sequence(); }, kInvalid,
         kReasonRequestInvalid, "names no sequence"},
        {"KAboveTheLimit", [](v1::DraftRequest* r) { r->set_k(kMaxK + 1); }, kInvalid,
         kReasonKOutOfRange, "k is 10; expected 0..9"},
        {"KBeyondInt32", [](v1::DraftRequest* r) { r->set_k(0xffffffffu); }, kInvalid,
         kReasonKOutOfRange, "k is 4294967295"},
        {"KWithoutRows",
         [](v1::DraftRequest* r) {
           r->clear_token_ids();
           r->clear_hidden_states();
         },
         kInvalid, kReasonKWithoutRows, "k is 3"},
        {"TooManyRows",
         [](v1::DraftRequest* r) {
           for (int i = 3; i <= kMaxRowsPerCall; ++i) {
             r->add_token_ids(1);
             r->mutable_hidden_states()->mutable_data()->append(48, '\0');
           }
         },
         kInvalid, kReasonTooManyRows, "21 rows"},
        {"OversizeMessage",
         [](v1::DraftRequest* r) { r->mutable_hidden_states()->mutable_data()->resize(70'000); },
         absl::StatusCode::kResourceExhausted, kReasonMessageTooLarge, "expected at most 65536"},
        {"ManifestOfNoCaptures",
         [](v1::DraftRequest* r) {
           rpc::EncodeManifest(FittingManifest(), r->mutable_manifest());
           r->mutable_manifest()->clear_captures();
         },
         kInvalid, kReasonManifestInvalid, "capture list is empty"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(DraftServiceBadInputTest, ANumberBelowTheLastServedIsAborted) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest first = sequence.NextRequest(2, 1);
  first.set_seq(7);
  ASSERT_THAT(Draft(server.stub(), first), IsOk());
  sequence.Commit(2);
  v1::DraftRequest old = sequence.NextRequest(1, 1);
  old.set_seq(6);
  EXPECT_THAT(Draft(server.stub(), old), Refuses(absl::StatusCode::kAborted, kReasonSeqBehind));
}

TEST(DraftServiceBadInputTest, AGapNamesTheRowToResendFrom) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  ExpectRightDraft(server.stub(), &sequence, 4, 2);
  v1::DraftRequest ahead = sequence.NextRequest(1, 1);
  ahead.set_base_length(6);
  EXPECT_EQ(DetailOf(Draft(server.stub(), ahead)).resend_from, 4);
}

TEST(DraftServiceBadInputTest, AMessageFarAboveTheLimitIsCutOffByGrpcAndHurtsNobodyElse) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest huge = sequence.NextRequest(1, 1);
  huge.mutable_hidden_states()->mutable_data()->resize(1 << 20);
  EXPECT_THAT(Draft(server.stub(), huge), StatusIs(absl::StatusCode::kResourceExhausted));
  ExpectRightDraft(server.stub(), &sequence, 4, 2);
}

TEST(DraftServiceBadInputTest, MalformedCallsAreToldToTheObserverAsShape) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest bad = sequence.NextRequest(1, 1);
  bad.mutable_hidden_states()->mutable_data()->pop_back();
  EXPECT_FALSE(Draft(server.stub(), bad).ok());
  EXPECT_THAT(server.observer().rejected(), ElementsAre(RejectReason::kShape));
}

TEST(DraftServiceBadInputTest, DetailsReachAClientThatKnowsOnlyGooglesProtos) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest ahead = sequence.NextRequest(1, 1);
  ahead.set_base_length(6);
  grpc::ClientContext context;
  v1::DraftResponse response;
  const grpc::Status status = server.stub().Draft(&context, ahead, &response);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(1).UnpackTo(&info));
  EXPECT_EQ(info.reason(), kReasonBaseLengthAhead);
}

TEST(DraftServiceBadInputTest, AnErrorThatQuotesALongTextArrivesWhole) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  v1::DraftRequest bad = sequence.NextRequest(1, 1);
  bad.set_session_id(std::string(50'000, 's'));
  EXPECT_THAT(DetailOf(Draft(server.stub(), bad)).reason, kReasonSessionUnknown);
}

struct BadOpenCase {
  std::string name;
  void (*spoil)(v1::OpenSessionRequest*);
  absl::StatusCode code;
  std::string reason;
  std::string message;
  std::vector<std::string> fields;  // of the mismatches
};

class BadOpenTest : public ::testing::TestWithParam<BadOpenCase> {};

TEST_P(BadOpenTest, IsRefusedAndLeavesOtherSessionsAsTheyWere) {
  InProcessServer server(Options());
  TestSequence bystander(2);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &bystander, 3, 4);

  v1::OpenSessionRequest request = TestSequence(1).OpenRequest();
  GetParam().spoil(&request);
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  const absl::Status status =
      rpc::FromGrpcStatus(server.stub().OpenSession(&context, request, &response));
  EXPECT_THAT(status, StatusIs(GetParam().code));
  EXPECT_EQ(DetailOf(status).reason, GetParam().reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(status.message()), ContainsRegex("[;,] expected .*; [a-z]"));
  std::vector<std::string> fields;
  for (const FieldMismatch& mismatch : DetailOf(status).mismatches) {
    fields.push_back(mismatch.field);
  }
  EXPECT_EQ(fields, GetParam().fields);

  ExpectRightDraft(server.stub(), &bystander, 2, 5);
  EXPECT_EQ(server.UsedPages(), 2) << "of the bystander's five rows";
}

constexpr auto kUnfit = absl::StatusCode::kFailedPrecondition;
INSTANTIATE_TEST_SUITE_P(
    Cases, BadOpenTest,
    ::testing::ValuesIn(std::vector<BadOpenCase>{
        {"NoManifest",
         [](v1::OpenSessionRequest* r) { r->clear_manifest(); },
         kInvalid,
         kReasonManifestInvalid,
         "brings no manifest",
         {}},
        {"BoundaryAboveNumLayers",
         [](v1::OpenSessionRequest* r) {
           r->mutable_manifest()->mutable_captures(2)->set_boundary(9);
         },
         kInvalid,
         kReasonManifestInvalid,
         "capture 2 is boundary 9",
         {}},
        {"WrongBoundaries",
         [](v1::OpenSessionRequest* r) {
           r->mutable_manifest()->mutable_captures(0)->set_boundary(2);
         },
         kUnfit,
         kReasonManifestMismatch,
         "[2, 4, 7]",
         {"captures"}},
        {"BoundariesInAnotherOrder",
         [](v1::OpenSessionRequest* r) {
           r->mutable_manifest()->mutable_captures()->SwapElements(0, 2);
         },
         kUnfit,
         kReasonManifestMismatch,
         "[7, 4, 1]",
         {"captures"}},
        {"AnotherTarget",
         [](v1::OpenSessionRequest* r) {
           r->mutable_manifest()->set_num_layers(32);
           r->mutable_manifest()->set_hidden_size(4096);
           r->mutable_manifest()->set_vocab_size(32000);
         },
         kUnfit,
         kReasonManifestMismatch,
         "num_layers is 32, expected 8",
         {"num_layers", "hidden_size", "vocab_size"}},
        {"AnotherDrafter",
         [](v1::OpenSessionRequest* r) { r->mutable_manifest()->set_drafter("other"); },
         kUnfit,
         kReasonManifestMismatch,
         "drafter is other",
         {"drafter"}},
        {"TemperatureZero",
         [](v1::OpenSessionRequest* r) { r->mutable_options()->mutable_sampling(); },
         kInvalid,
         kReasonOptionsInvalid,
         "options.sampling.temperature is 0",
         {}},
        {"TreeOfWidthOne",
         [](v1::OpenSessionRequest* r) {
           v1::TreeShape* tree = r->mutable_options()->mutable_tree();
           tree->set_depth(3);
           tree->set_top_k(1);
           tree->set_total_tokens(3);
         },
         kInvalid,
         kReasonOptionsInvalid,
         "options.tree.top_k is 1",
         {}},
        {"MoreNodesThanTheServerDrafts",
         [](v1::OpenSessionRequest* r) {
           v1::TreeShape* tree = r->mutable_options()->mutable_tree();
           tree->set_depth(3);
           tree->set_top_k(3);
           tree->set_total_tokens(kMaxK + 1);
         },
         kInvalid,
         kReasonOptionsInvalid,
         "total_tokens",
         {}},
        {"ForkAndStart",
         [](v1::OpenSessionRequest* r) {
           r->mutable_fork()->set_session_id("parent");
           r->set_start(5);
         },
         kInvalid,
         kReasonOptionsInvalid,
         "fork is set and start is 5",
         {}},
        {"ForkOfNoSession",
         [](v1::OpenSessionRequest* r) { r->mutable_fork()->set_session_id("parent"); },
         absl::StatusCode::kNotFound,
         kReasonSessionUnknown,
         "session \"parent\"",
         {}},
        {"LongClient",
         [](v1::OpenSessionRequest* r) { r->set_client(std::string(65, 'c')); },
         kInvalid,
         kReasonOptionsInvalid,
         "client has 65 bytes",
         {}},
    }),
    [](const auto& test) { return test.param.name; });

TEST(DraftServiceBadInputTest, ClosingWithAnIdOutsideTheVocabularyLeavesTheSessionOpen) {
  InProcessServer server(Options());
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  ExpectRightDraft(server.stub(), &sequence, 3, 2);
  v1::CloseSessionRequest close;
  close.set_session_id(sequence.session_id);
  close.add_final_token_ids(5);
  close.add_final_token_ids(101);
  grpc::ClientContext context;
  v1::CloseSessionResponse response;
  const absl::Status status =
      rpc::FromGrpcStatus(server.stub().CloseSession(&context, close, &response));
  EXPECT_THAT(status, Refuses(kInvalid, kReasonTokenOutOfRange));
  EXPECT_THAT(std::string(status.message()), HasSubstr("final_token_ids[1] is 101"));
  ExpectRightDraft(server.stub(), &sequence, 1, 2);
}

TEST(DraftServiceBadInputTest, ClosingAnUnknownSessionIsNotFound) {
  InProcessServer server(Options());
  v1::CloseSessionRequest close;
  close.set_session_id("gone");
  grpc::ClientContext context;
  v1::CloseSessionResponse response;
  EXPECT_THAT(rpc::FromGrpcStatus(server.stub().CloseSession(&context, close, &response)),
              Refuses(absl::StatusCode::kNotFound, kReasonSessionUnknown));
}

}  // namespace
}  // namespace aerie
