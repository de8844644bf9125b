// What the engine refuses, with which words, and that a refusal changes nothing.
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EngineOptions SmallLimits() {
  EngineOptions options;
  options.max_k = 6;
  options.max_rows_per_call = 8;
  options.max_context = 40;
  return options;
}

// A session with rows 0..2 and a proposal, and another one beside it.
class CallRefusalTest : public ::testing::Test {
 protected:
  CallRefusalTest() : driver_(SmallLimits()) {
    id_ = driver_.OpenSession();
    other_ = driver_.OpenSession();
    EXPECT_THAT(driver_.Run(MakeDraftCall(other_, 0, {7, 8}, 0, 5)), IsOk());
    auto drafted = driver_.Run(Numbered(MakeDraftCall(id_, 0, {1, 2, 3}, 4), 10));
    EXPECT_THAT(drafted, IsOk());
    proposal_ = drafted->tree;
  }

  static DraftCall Numbered(DraftCall call, uint64_t seq) {
    call.seq = seq;
    return call;
  }

  // The session answers as if the refused call had never come, and so does its neighbour.
  void ExpectUntouched() {
    std::vector<int32_t> tokens = {proposal_.tokens[0], proposal_.tokens[1], 99};
    const auto next = driver_.Run(Numbered(MakeDraftCall(id_, 3, tokens, 4), 11));
    ASSERT_THAT(next, IsOk());
    EXPECT_EQ(next->accepted, 2);
    tokens.insert(tokens.begin(), {1, 2, 3});
    EXPECT_EQ(next->tree, DraftAlone(tokens, MakeRows(FittingManifest(), 0, 6).view, 4));
    const auto neighbour = driver_.Run(MakeDraftCall(other_, 2, {9}, 3, 5));
    ASSERT_THAT(neighbour, IsOk());
    EXPECT_EQ(neighbour->tree, DraftAlone({7, 8, 9}, MakeRows(FittingManifest(), 0, 3, 5).view, 3));
    EXPECT_EQ(driver_.model.open_slots(), 0) << "no round is under way";
    EXPECT_EQ(driver_.core.kv_usage().pages_used, 3) << "rows 0..5, and 0..2 of the neighbour";
  }

  CoreDriver driver_;
  std::string id_, other_;
  DraftTree proposal_;
};

struct RefusalCase {
  std::string name;
  DraftCall (*change)(DraftCall good);
  StatusCode code;
  std::string reason;
  std::string words;
};

class RefusalTableTest : public CallRefusalTest,
                         public ::testing::WithParamInterface<RefusalCase> {};

TEST_P(RefusalTableTest, SaysWhyAndChangesNothing) {
  const RefusalCase& c = GetParam();
  const auto rounds = driver_.observer.rounds().size();
  const auto passes = driver_.model.passes().size();
  const auto refused = driver_.Run(c.change(Numbered(MakeDraftCall(id_, 3, {50, 51}, 2), 11)));
  EXPECT_THAT(refused, Refuses(c.code, c.reason));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(c.words));
  EXPECT_EQ(driver_.model.passes().size(), passes) << "a refused call must not run";
  ASSERT_EQ(driver_.observer.rounds().size(), rounds + 1);
  EXPECT_EQ(driver_.observer.last_round().outcome, c.code);
  EXPECT_EQ(driver_.observer.last_round().rows, 0);
  if (c.code == StatusCode::kInvalidArgument) {
    EXPECT_THAT(driver_.observer.rejected(), ElementsAre(RejectReason::kShape));
  } else if (c.code == StatusCode::kDeadlineExceeded) {
    EXPECT_THAT(driver_.observer.rejected(), ElementsAre(RejectReason::kDeadline));
  } else {
    EXPECT_THAT(driver_.observer.rejected(), IsEmpty());
  }
  ExpectUntouched();
}

DraftCall WithOtherDType(DraftCall call) {
  return MakeDraftCall(std::get<std::string>(call.sequence), 3, call.tokens, 2, 0,
                       FittingManifest(FakeSpec(), DType::kBF16));
}

DraftCall WithNarrowRows(DraftCall call) {
  Manifest narrow = FittingManifest();
  narrow.hidden_size = 3;
  return MakeDraftCall(std::get<std::string>(call.sequence), 3, call.tokens, 2, 0, narrow);
}

std::shared_ptr<CancelFlag> SetFlag() {
  auto flag = std::make_shared<CancelFlag>();
  flag->Set();
  return flag;
}

template <auto Member, auto value>
DraftCall With(DraftCall call) {
  call.*Member = value;
  return call;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RefusalTableTest,
    ::testing::ValuesIn(std::vector<RefusalCase>{
        {"UnknownSession",
         [](DraftCall call) {
           call.sequence = "0123456789abcdef0123456789abcdef";
           return call;
         },
         StatusCode::kNotFound, kReasonSessionUnknown, "open a new session and resend from row 0"},
        {"SeqBehind", With<&DraftCall::seq, uint64_t{9}>, StatusCode::kAborted, kReasonSeqBehind,
         "seq 9; expected more than 10"},
        {"OtherDType", WithOtherDType, StatusCode::kInvalidArgument, kReasonDType,
         "came as bfloat16; expected float32"},
        {"Fp8OfASessionWithout", With<&DraftCall::fp8, true>, StatusCode::kInvalidArgument,
         kReasonDType, "came as float8_e4m3fn"},
        {"FusedOfASessionWithout", With<&DraftCall::fused, true>, StatusCode::kInvalidArgument,
         kReasonRequestInvalid, "fused is true; expected false"},
        {"OtherWidth", WithNarrowRows, StatusCode::kInvalidArgument, kReasonByteCount,
         "9 elements wide; expected 12"},
        {"MoreTokensThanRows",
         [](DraftCall call) {
           call.tokens.push_back(52);
           return call;
         },
         StatusCode::kInvalidArgument, kReasonByteCount, "2 rows of hidden states and 3 token ids"},
        {"RowsWithoutTokens",
         [](DraftCall call) {
           call.tokens.clear();
           call.k = 0;
           return call;
         },
         StatusCode::kInvalidArgument, kReasonByteCount, "2 rows of hidden states and 0 token ids"},
        {"TooManyRows",
         [](DraftCall call) {
           return MakeDraftCall(std::get<std::string>(call.sequence), 3,
                                std::vector<int32_t>(9, 50), 2);
         },
         StatusCode::kInvalidArgument, kReasonTooManyRows, "9 rows; expected at most 8"},
        {"IdAtTheVocabularySize",
         [](DraftCall call) {
           call.tokens[1] = 101;
           return call;
         },
         StatusCode::kInvalidArgument, kReasonTokenOutOfRange,
         "token_ids[1] is 101; expected 0..100"},
        {"PlaceholderId",
         [](DraftCall call) {
           call.tokens[0] = -1;
           return call;
         },
         StatusCode::kInvalidArgument, kReasonTokenOutOfRange, "token_ids[0] is -1"},
        {"KAboveTheLimit", With<&DraftCall::k, 7>, StatusCode::kInvalidArgument, kReasonKOutOfRange,
         "k is 7; expected 0..6"},
        {"NegativeK", With<&DraftCall::k, -1>, StatusCode::kInvalidArgument, kReasonKOutOfRange,
         "k is -1"},
        {"KWithoutRows",
         [](DraftCall call) {
           call.tokens.clear();
           call.rows = HiddenRows();
           return call;
         },
         StatusCode::kInvalidArgument, kReasonKWithoutRows, "k is 2 but the call brings no row"},
        {"NegativeBase", With<&DraftCall::base_length, int64_t{-1}>, StatusCode::kInvalidArgument,
         kReasonRequestInvalid, "base_length is -1"},
        {"BaseAhead", With<&DraftCall::base_length, int64_t{4}>, StatusCode::kFailedPrecondition,
         kReasonBaseLengthAhead, "starts at row 4; expected at most 3"},
        {"DeadlinePassed",
         [](DraftCall call) {
           call.deadline = absl::FromUnixSeconds(1000) - absl::Seconds(1);
           return call;
         },
         StatusCode::kDeadlineExceeded, kReasonDeadline, "decode this round without a draft"},
        {"Cancelled",
         [](DraftCall call) {
           call.cancel = SetFlag();
           return call;
         },
         StatusCode::kCancelled, kReasonCancelled, "the caller gave up"},
    }),
    [](const auto& test) { return test.param.name; });

TEST_F(CallRefusalTest, NamesTheRowToResendFromAfterAGap) {
  const auto refused = driver_.Run(MakeDraftCall(id_, 5, {1}, 1));
  EXPECT_EQ(DetailOf(refused.status()).resend_from, 3);
  EXPECT_THAT(driver_.Run(MakeDraftCall(id_, 3, {4, 5, 6}, 1)), IsOk());
}

TEST_F(CallRefusalTest, HoldsACallToItsSessionsOwnK) {
  const auto opened = driver_.Open(FittingManifest(), {.max_k = 2});
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->max_k, 2);
  EXPECT_THAT(driver_.Run(MakeDraftCall(opened->session_id, 0, {1}, 3)),
              Refuses(StatusCode::kInvalidArgument, kReasonKOutOfRange));
  EXPECT_THAT(driver_.Run(MakeDraftCall(opened->session_id, 0, {1}, 2)), IsOk());
}

TEST_F(CallRefusalTest, AnswersARepeatedNumberFromMemoryWhateverElseItSays) {
  const auto first = driver_.Run(Numbered(MakeDraftCall(id_, 3, {60, 61}, 3), 11));
  ASSERT_THAT(first, IsOk());
  const auto passes = driver_.model.passes().size();
  DraftCall nonsense = Numbered(MakeDraftCall(id_, 30, {-5}, 100), 11);
  nonsense.deadline = absl::InfinitePast();
  const auto second = driver_.Run(nonsense);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->tree, first->tree);
  EXPECT_EQ(second->length, first->length);
  EXPECT_EQ(second->accepted, first->accepted);
  EXPECT_EQ(second->seq, 11u);
  EXPECT_EQ(driver_.model.passes().size(), passes);
  EXPECT_EQ(driver_.observer.last_round().proposed, 0) << "a proposal is counted once";
}

TEST_F(CallRefusalTest, RemembersTheNumberOfACallThatNeededNoPass) {
  ASSERT_THAT(driver_.Run(Numbered(MakeDraftCall(id_, 1, {}, 0), 20)), IsOk());
  ASSERT_THAT(driver_.Run(Numbered(MakeDraftCall(id_, 0, {}, 0), 20)), IsOk());
  EXPECT_EQ(driver_.Run(MakeDraftCall(id_, 1, {}, 0))->length, 1) << "the repeat changed nothing";
  EXPECT_THAT(driver_.Run(Numbered(MakeDraftCall(id_, 1, {2}, 0), 19)),
              Refuses(StatusCode::kAborted, kReasonSeqBehind));
}

TEST_F(CallRefusalTest, RunsARepeatThatWaitsBehindTheCallItRepeatsOnlyOnce) {
  const auto first = driver_.Draft(Numbered(MakeDraftCall(id_, 3, {60, 61}, 3), 11));
  const auto second = driver_.Draft(Numbered(MakeDraftCall(id_, 3, {60, 61}, 3), 11));
  driver_.RunAll();
  ASSERT_THAT(second->value(), IsOk());
  EXPECT_EQ(first->value()->tree, second->value()->tree);
  EXPECT_EQ(second->value()->length, 5);
}

TEST_F(CallRefusalTest, DoesNotRememberTheNumberOfARefusedCall) {
  DraftCall bad = Numbered(MakeDraftCall(id_, 3, {101}, 2), 11);
  EXPECT_THAT(driver_.Run(bad), StatusIs(StatusCode::kInvalidArgument));
  ExpectUntouched();
}

TEST_F(CallRefusalTest, ChecksACallWhenItsTurnComes) {
  // At arrival the session holds 3 rows; by the time of the second call it holds 5.
  const auto first = driver_.Draft(MakeDraftCall(id_, 3, {60, 61}, 2));
  const auto second = driver_.Draft(MakeDraftCall(id_, 5, {62}, 2));
  driver_.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(second->value(), IsOk());
}

TEST_F(CallRefusalTest, RefusesAFinalTokenOutsideTheVocabularyAndLetsTheSessionGoOn) {
  EXPECT_THAT(driver_.RunClose(id_, {5, 101}),
              Refuses(StatusCode::kInvalidArgument, kReasonTokenOutOfRange));
  ExpectUntouched();
}

TEST_F(CallRefusalTest, RefusesToCloseASessionThatIsNotThere) {
  EXPECT_THAT(driver_.RunClose("nobody"), Refuses(StatusCode::kNotFound, kReasonSessionUnknown));
}

}  // namespace
}  // namespace aerie
