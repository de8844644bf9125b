// Rows a second and bytes in flight of one client: who is held to them, how a refusal looks on each
// path, and that nobody else feels it.
#include "server/transport/client_limits.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/access_control.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Limits, and the clock that they read.
class LimitsFixture {
 public:
  explicit LimitsFixture(const ClientLimitOptions& options)
      : limits(std::make_shared<ClientLimits>(options, [this] { return now(); })) {}

  absl::Time now() const {
    const MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration step) {
    const MutexLock lock(&mutex_);
    now_ += step;
  }
  // OK, or why not; what was admitted stays until its Stay leaves.
  absl::StatusOr<ClientLimits::Stay> Admit(const std::string& client, int64_t bytes,
                                           int64_t rows = 0) {
    return limits->Admit(client, bytes, rows, &reason);
  }

  RejectReason reason = RejectReason::kShape;

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1000);

 public:
  const std::shared_ptr<ClientLimits> limits;
};

TEST(ClientLimitsTest, HoldEachClientToItsRowsASecond) {
  LimitsFixture fixture({.max_rows_per_second = 1000, .row_burst = 50});
  EXPECT_TRUE(fixture.Admit("anna", 1, 50).ok());
  const auto refused = fixture.Admit("anna", 1, 1);
  EXPECT_THAT(refused.status(), Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_EQ(fixture.reason, RejectReason::kClientRows);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("client \"anna\" has brought more rows than it may by now; expected 1000 a "
                        "second, and 50 at once after a pause; decode this round"));
  EXPECT_EQ(DetailOf(refused.status()).retry_after, absl::Milliseconds(1));
  EXPECT_TRUE(fixture.Admit("bert", 1, 50).ok());
  fixture.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(fixture.Admit("anna", 1, 1).ok());
}

TEST(ClientLimitsTest, HoldEachClientToItsBytesUntilTheyAreAnswered) {
  LimitsFixture fixture({.max_bytes_in_flight = 100});
  auto first = fixture.Admit("anna", 60);
  ASSERT_TRUE(first.ok());
  const auto refused = fixture.Admit("anna", 41);
  EXPECT_THAT(refused.status(), Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_EQ(fixture.reason, RejectReason::kClientBytes);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("client \"anna\" sends 41 bytes while 60 of its are not answered yet; "
                        "expected at most 100 together;"));
  EXPECT_GT(DetailOf(refused.status()).retry_after, absl::ZeroDuration());
  EXPECT_TRUE(fixture.Admit("bert", 100).ok());
  const auto second = fixture.Admit("anna", 40);
  EXPECT_TRUE(second.ok());
  first->Leave();
  first->Leave();  // does nothing
  EXPECT_FALSE(fixture.Admit("anna", 61).ok());
  EXPECT_TRUE(fixture.Admit("anna", 60).ok());
}

TEST(ClientLimitsTest, TakeNoRowsOfARequestWhoseBytesAreTooMany) {
  LimitsFixture fixture({.max_rows_per_second = 10, .row_burst = 10, .max_bytes_in_flight = 100});
  const auto held = fixture.Admit("anna", 100);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(fixture.Admit("anna", 1, 10).ok());
  EXPECT_EQ(fixture.reason, RejectReason::kClientBytes);
  EXPECT_TRUE(fixture.Admit("bert", 1, 10).ok());
  EXPECT_TRUE(fixture.Admit("anna", 0, 10).ok());
}

TEST(ClientLimitsTest, AreNotWidenedByNumbersThatOverflow) {
  LimitsFixture fixture({.max_bytes_in_flight = 100});
  const auto held = fixture.Admit("anna", 100);
  EXPECT_FALSE(fixture.Admit("anna", std::numeric_limits<int64_t>::max()).ok());
}

TEST(ClientLimitsTest, ForgetClientsThatCameAndWent) {
  LimitsFixture fixture({.max_rows_per_second = 1000, .max_bytes_in_flight = 100});
  const auto held = fixture.Admit("holds bytes", 7);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(fixture.Admit(absl::StrCat("ipv6:[2001:db8::", i, "]"), 1, 1).ok());
    fixture.Advance(absl::Milliseconds(1));
  }
  EXPECT_LE(fixture.limits->size(), 200u);
  EXPECT_FALSE(fixture.Admit("holds bytes", 94).ok());
}

TEST(ClientLimitsTest, AreKeptByManyThreadsAtOnce) {
  LimitsFixture fixture({.max_bytes_in_flight = 10});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&fixture] {
      for (int i = 0; i < 2000; ++i) {
        RejectReason reason{};
        auto stay = fixture.limits->Admit("anna", 10, 0, &reason);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(fixture.Admit("anna", 10).ok()) << "every byte was given back";
}

struct PeerCase {
  std::string name, caller, peer, account;
};

class AccountTest : public testing::TestWithParam<PeerCase> {};

TEST_P(AccountTest, IsTheNameThatWasAdmittedOrElseTheHost) {
  EXPECT_EQ(AccountOf(GetParam().caller, GetParam().peer), GetParam().account);
}

INSTANTIATE_TEST_SUITE_P(Cases, AccountTest,
                         testing::ValuesIn(std::vector<PeerCase>{
                             {"Name", "worker-a", "ipv4:10.0.0.7:41234", "worker-a"},
                             {"Ipv4", "", "ipv4:10.0.0.7:41234", "ipv4:10.0.0.7"},
                             {"Ipv6", "", "ipv6:%5B2001:db8::7%5D:41234", "ipv6:%5B2001:db8::7%5D"},
                             {"UnixSocket", "", "unix:/run/aerie/aerie.sock", "unix"},
                             {"NamelessUnixSocket", "", "unix:", "unix"},
                             {"Nothing", "", "", ""},
                         }),
                         [](const auto& test) { return test.param.name; });

struct ContradictionCase {
  std::string name;
  ClientLimitOptions options;
  std::string message;
};

class ContradictionTest : public testing::TestWithParam<ContradictionCase> {};

TEST_P(ContradictionTest, IsNamedWithItsFlagAndValue) {
  const absl::Status status = GetParam().options.Validate(/*max_message_bytes=*/64 << 20);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ContradictionTest,
    testing::ValuesIn(std::vector<ContradictionCase>{
        {"NegativeRate",
         {.max_rows_per_second = -1},
         "--max-rows-per-second-per-client is -1; expected 0 or more"},
        {"NegativeBurst", {.row_burst = -1}, "--row-burst-per-client is -1; expected 0 or more"},
        {"BurstWithoutARate",
         {.row_burst = 9},
         "--row-burst-per-client is 9 but --max-rows-per-second-per-client is 0; expected"},
        {"NegativeBytes",
         {.max_bytes_in_flight = -1},
         "--max-bytes-in-flight-per-client is -1; expected 0 or more"},
        {"FewerBytesThanAMessage",
         {.max_bytes_in_flight = 1000},
         "--max-bytes-in-flight-per-client is 1000 but --max-message-bytes is 67108864; expected"},
    }),
    [](const auto& test) { return test.param.name; });

// The same through a server.

InProcessOptions Serving(const LimitsFixture& fixture) {
  InProcessOptions options;
  options.limits.clients = fixture.limits;
  return options;
}

absl::Status TryDraft(v1::DraftService::Stub& stub, const v1::DraftRequest& request) {
  grpc::ClientContext context;
  v1::DraftResponse response;
  return rpc::FromGrpcStatus(stub.Draft(&context, request, &response));
}

TEST(ServedClientLimitsTest, RefuseAUnaryCallThatComesTooEarlyAndTakeItLater) {
  LimitsFixture fixture({.max_rows_per_second = 10, .row_burst = 8});
  InProcessServer server(Serving(fixture));
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  ExpectRightDraft(server.stub(), &sequence, 8, 2);
  const absl::Status refused = TryDraft(server.stub(), sequence.NextRequest(1, 2));
  EXPECT_THAT(refused, Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_EQ(DetailOf(refused).retry_after, absl::Milliseconds(100));
  EXPECT_THAT(server.observer().rejected(), ElementsAre(RejectReason::kClientRows));
  fixture.Advance(absl::Milliseconds(100));
  ExpectRightDraft(server.stub(), &sequence, 1, 2);
}

TEST(ServedClientLimitsTest, RefuseOneMessageOfAStreamThatGoesOn) {
  LimitsFixture fixture({.max_rows_per_second = 10, .row_burst = 8});
  InProcessServer server(Serving(fixture));
  TestStream stream(server.stub());
  TestSequence sequence(1), other(2);
  stream.Open(&sequence);
  stream.Open(&other);
  stream.ExpectRightDraft(&sequence, 8, 2);
  const uint64_t id = stream.SendDraft(other.NextRequest(3, 2));
  const v1::DraftStreamResponse response = stream.Read();
  EXPECT_EQ(response.id(), id);
  EXPECT_EQ(response.error().code(), static_cast<int>(StatusCode::kResourceExhausted));
  EXPECT_EQ(response.error().reason(), kReasonClientLimit);
  EXPECT_EQ(response.error().retry_after().nanos(), 100'000'000);
  fixture.Advance(absl::Milliseconds(100));
  stream.ExpectRightDraft(&other, 3, 2);
  EXPECT_TRUE(stream.HalfClose().ok());
}

TEST(ServedClientLimitsTest, CountBytesOfUnaryCallsAndStreamsTogetherUntilTheAnswer) {
  TestSequence waiting(1), streamed(2);
  const auto bytes = static_cast<int64_t>(waiting.NextRequest(40, 2).ByteSizeLong());
  LimitsFixture fixture({.max_bytes_in_flight = 2 * bytes});
  Gate gate;
  InProcessOptions options = Serving(fixture);
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  OpenUnary(server.stub(), &waiting);
  TestStream stream(server.stub());
  stream.Open(&streamed);
  gate.Close();
  absl::Status answer = absl::UnknownError("none yet");
  std::thread caller([&] { answer = TryDraft(server.stub(), waiting.NextRequest(40, 2)); });
  gate.WaitUntilReached();
  stream.SendDraft(streamed.NextRequest(45, 2));
  const v1::DraftStreamResponse refused = stream.Read();
  EXPECT_EQ(refused.error().reason(), kReasonClientLimit);
  EXPECT_THAT(refused.error().message(), HasSubstr("are not answered yet"));
  EXPECT_THAT(server.observer().rejected(), ElementsAre(RejectReason::kClientBytes));
  gate.Open();
  caller.join();
  EXPECT_THAT(answer, IsOk());
  stream.ExpectRightDraft(&streamed, 45, 2);
}

TEST(ServedClientLimitsTest, LetACallThatWasAnsweredBeFollowedAtOnceByTheNext) {
  TestSequence sequence(1);
  const auto bytes = static_cast<int64_t>(sequence.NextRequest(4, 2).ByteSizeLong());
  LimitsFixture fixture({.max_bytes_in_flight = bytes + 100});
  InProcessServer server(Serving(fixture));
  OpenUnary(server.stub(), &sequence);
  for (int i = 0; i < 50; ++i) ExpectRightDraft(server.stub(), &sequence, 4, 2);
  TestSequence streamed(2);
  TestStream stream(server.stub());
  stream.Open(&streamed);
  for (int i = 0; i < 50; ++i) stream.ExpectRightDraft(&streamed, 4, 2);
}

TEST(ServedClientLimitsTest, NeverRefuseToCloseASession) {
  LimitsFixture fixture({.max_rows_per_second = 1, .max_bytes_in_flight = 1 << 20});
  InProcessServer server(Serving(fixture));
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  ExpectRightDraft(server.stub(), &sequence, 40, 2);
  const auto held = fixture.Admit("ipv4:127.0.0.1", 1 << 20);
  ASSERT_TRUE(held.ok());
  grpc::ClientContext context;
  v1::CloseSessionRequest request;
  request.set_session_id(sequence.session_id);
  v1::CloseSessionResponse response;
  EXPECT_TRUE(server.stub().CloseSession(&context, request, &response).ok());
}

}  // namespace
}  // namespace aerie
