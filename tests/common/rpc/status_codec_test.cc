// An error must reach programs whole: code, message, ErrorDetail and the standard details of
// google.rpc.
#include "common/rpc/status_codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace aerie::rpc {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

// The detail of type T; fails the test unless there is exactly one.
template <typename T>
T Only(const google::rpc::Status& status) {
  T out;
  int found = 0;
  for (const auto& any : status.details()) {
    if (any.Is<T>()) {
      any.UnpackTo(&out);
      ++found;
    }
  }
  EXPECT_EQ(found, 1) << T::descriptor()->full_name();
  return out;
}

absl::Status Gap() {
  ErrorDetail detail;
  detail.reason = kReasonBaseLengthAhead;
  detail.resend_from = 0;
  return WithDetail(absl::FailedPreconditionError("the call starts ahead"), detail);
}

TEST(StatusCodecTest, OkStaysOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusCodecTest, AGapSaysWhereToResendFromEvenWhenThatIsRowZero) {
  const grpc::Status wire = ToGrpcStatus(Gap());
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(wire.error_message(), "the call starts ahead");
  const google::rpc::Status details = DetailsOf(wire);
  EXPECT_EQ(details.code(), 9);
  EXPECT_EQ(details.message(), "the call starts ahead");
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/aerie.v1.ErrorDetail");
  const auto ours = Only<v1::ErrorDetail>(details);
  EXPECT_TRUE(ours.has_resend_from());
  EXPECT_EQ(ours.resend_from(), 0u);
  const auto info = Only<google::rpc::ErrorInfo>(details);
  EXPECT_EQ(info.domain(), "aerie");
  EXPECT_EQ(info.reason(), "BASE_LENGTH_AHEAD");
  EXPECT_EQ(info.metadata().at("resend_from"), "0");
  const auto failure = Only<google::rpc::PreconditionFailure>(details);
  ASSERT_THAT(failure.violations(), SizeIs(1));
  EXPECT_EQ(failure.violations(0).subject(), "base_length");

  const absl::Status back = FromGrpcStatus(wire);
  EXPECT_EQ(back.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(back.message(), "the call starts ahead");
  EXPECT_EQ(DetailOf(back).reason, kReasonBaseLengthAhead);
  EXPECT_EQ(DetailOf(back).resend_from, 0);
}

TEST(StatusCodecTest, AManifestThatDoesNotFitNamesEveryField) {
  ErrorDetail detail;
  detail.reason = kReasonManifestMismatch;
  detail.mismatches = {{"captures", "[2, 15, 27]", "[1, 14, 26]"}, {"hidden_size", "576", "960"}};
  const grpc::Status wire =
      ToGrpcStatus(WithDetail(absl::FailedPreconditionError("does not fit"), detail));
  const auto failure = Only<google::rpc::PreconditionFailure>(DetailsOf(wire));
  ASSERT_THAT(failure.violations(), SizeIs(2));
  EXPECT_EQ(failure.violations(1).subject(), "hidden_size");
  EXPECT_EQ(failure.violations(1).description(), "expected 576, received 960");
  EXPECT_EQ(DetailOf(FromGrpcStatus(wire)).mismatches, detail.mismatches);
}

TEST(StatusCodecTest, AFullServerSaysWhenToRetry) {
  ErrorDetail detail;
  detail.reason = kReasonQueueFull;
  detail.retry_after = absl::Milliseconds(50);
  const grpc::Status wire =
      ToGrpcStatus(WithDetail(absl::ResourceExhaustedError("queue is full"), detail));
  EXPECT_EQ(Only<google::rpc::RetryInfo>(DetailsOf(wire)).retry_delay().nanos(), 50'000'000);
  EXPECT_EQ(DetailOf(FromGrpcStatus(wire)).retry_after, absl::Milliseconds(50));
}

TEST(StatusCodecTest, AMalformedCallNamesTheField) {
  const grpc::Status wire =
      ToGrpcStatus(WithReason(absl::InvalidArgumentError("seven bytes"), kReasonByteCount));
  const auto bad = Only<google::rpc::BadRequest>(DetailsOf(wire));
  ASSERT_THAT(bad.field_violations(), SizeIs(1));
  EXPECT_EQ(bad.field_violations(0).field(), "hidden_states.data");
}

TEST(StatusCodecTest, IsReadableAsStatusDetailsOfOurOwn) {
  v1::StatusDetails ours;
  ASSERT_TRUE(ours.ParseFromString(ToGrpcStatus(Gap()).error_details()));
  EXPECT_EQ(ours.code(), 9);
  v1::ErrorDetail detail;
  ASSERT_TRUE(ours.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.reason(), "BASE_LENGTH_AHEAD");
}

TEST(StatusCodecTest, StaysBelowTheTrailerLimitWhateverIsQuoted) {
  ErrorDetail detail;
  detail.reason = kReasonManifestMismatch;
  for (int i = 0; i < 100; ++i) {
    detail.mismatches.push_back({"drafter", "demo", std::string(100'000, 'x')});
  }
  const absl::Status huge = absl::FailedPreconditionError(std::string(1'000'000, 'y'));
  const grpc::Status wire = ToGrpcStatus(WithDetail(huge, detail));
  // Details travel in base64, four bytes for three.
  EXPECT_LE(wire.error_message().size() + wire.error_details().size() * 4 / 3, 7'600u);
  EXPECT_THAT(wire.error_message(), EndsWith("y..."));
}

TEST(StatusCodecTest, CutsBetweenCharacters) {
  std::string text;
  while (text.size() < 2000) absl::StrAppend(&text, "\xc3\xa9");  // two bytes each
  for (const char* head : {"", "x"}) {
    const v1::ErrorDetail detail = ToErrorDetail(absl::InternalError(absl::StrCat(head, text)));
    const std::string kept = detail.message().substr(0, detail.message().size() - 3);
    EXPECT_EQ((kept.size() - std::string(head).size()) % 2, 0u) << head;
  }
}

TEST(StatusCodecTest, KeepsCodeAndMessageWhenTheDetailsAreGarbage) {
  const absl::Status back =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone", "\xff\xff garbage"));
  EXPECT_EQ(back.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(back.message(), "gone");
}

TEST(ErrorDetailCodecTest, AnErrorNeverBecomesOk) {
  v1::ErrorDetail detail;
  detail.set_message("odd");
  for (const int code : {0, -1, 17, 1 << 30}) {
    detail.set_code(code);
    EXPECT_EQ(FromErrorDetail(detail).code(), absl::StatusCode::kUnknown) << code;
  }
}

TEST(ErrorDetailCodecTest, ComesBackAsItWent) {
  const absl::Status back = FromErrorDetail(ToErrorDetail(Gap()));
  EXPECT_EQ(back.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(back.message(), "the call starts ahead");
  EXPECT_EQ(DetailOf(back).resend_from, 0);
  EXPECT_EQ(DetailOf(back).retry_after, std::nullopt);
}

}  // namespace
}  // namespace aerie::rpc
