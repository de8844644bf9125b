// Clients that do not keep to the rules, or are no clients at all: whatever they do, the server
// goes on, everybody else gets the right drafts, and what they held is freed.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/rpc/status_codec.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/raw_socket.h"
#include "tests/server/transport/test_stream.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::Each;
using ::testing::Field;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A frame of HTTP/2: length, type, flags, stream, payload.
std::string Frame(size_t claimed_length, int type, int flags, uint32_t stream,
                  const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(claimed_length >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 0xff);
  return out + payload;
}

std::string RandomBytes(size_t count) {
  std::mt19937 random(11);
  std::string out;
  while (out.size() < count) out += static_cast<char>(random());
  return out;
}

struct GarbageCase {
  std::string name;
  std::string bytes;
};

class GarbageTest : public ::testing::TestWithParam<GarbageCase> {};

TEST_P(GarbageTest, OnThePortHurtsNobodyAndIsHungUpOn) {
  InProcessServer server;
  TestSequence bystander(1);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &bystander, 3, 2);
  {
    RawSocket socket(server.address());
    socket.Send(GetParam().bytes);
    ExpectRightDraft(server.stub(), &bystander, 1, 3);
    socket.HalfClose();
    socket.ReadToEnd();  // returns only when the server hangs up
  }
  ExpectRightDraft(server.stub(), &bystander, 2, 3);
  auto newcomer = v1::DraftService::NewStub(server.NewChannel());
  ExpectRightDraft(*newcomer, &bystander, 1, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GarbageTest,
    ::testing::ValuesIn(std::vector<GarbageCase>{
        {"Nothing", ""},
        {"RandomBytes", RandomBytes(100'000)},
        {"AnOldHttpRequest", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"ATlsGreeting", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)},
        {"APrefaceAlone", kPreface},
        {"AFrameThatNeverEnds",
         absl::StrCat(kPreface, Frame(0, 4, 0, 0, ""), Frame(0xffffff, 0, 0, 1, "abc"))},
        {"AFrameOfNoKnownKindOnAStreamThatIsNot",
         absl::StrCat(kPreface, Frame(0, 4, 0, 0, ""), Frame(4, 0x77, 0xff, 9, "abcd"),
                      Frame(4, 0, 1, 9, "abcd"))},
        {"HeadersThatDoNotUnpack",
         absl::StrCat(kPreface, Frame(0, 4, 0, 0, ""), Frame(40, 1, 4, 1, RandomBytes(40)))},
        {"SettingsOfHalfALength", absl::StrCat(kPreface, Frame(3, 4, 0, 0, "abc"))},
    }),
    [](const auto& test) { return test.param.name; });

// A DraftStream whose messages are whatever bytes a test writes.
class BytesStream {
 public:
  explicit BytesStream(const InProcessServer& server)
      : stub_(server.NewChannel()),
        stream_(stub_.PrepareCall(&context_, "/aerie.v1.DraftService/DraftStream", &queue_)) {
    stream_->StartCall(nullptr);
    Next();
  }

  void Send(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Next();
  }
  // False once the stream has ended.
  bool Read(grpc::ByteBuffer* reply) {
    stream_->Read(reply, nullptr);
    return Next();
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    AERIE_CHECK(queue_.Next(&tag, &ok));
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST(FaultsTest, AMessageThatIsNoMessageEndsItsOwnStreamAloneWithItsSessions) {
  InProcessServer server;
  TestStream healthy(server.stub());
  TestSequence bystander(1);
  healthy.Open(&bystander);
  healthy.ExpectRightDraft(&bystander, 3, 2);

  BytesStream broken(server);
  v1::DraftStreamRequest open;
  open.set_id(1);
  *open.mutable_open_session() = TestSequence(2).OpenRequest();
  broken.Send(open.SerializeAsString());
  grpc::ByteBuffer reply;
  ASSERT_TRUE(broken.Read(&reply));
  broken.Send("\xff\xff\xff\xff no message of anybody's");
  EXPECT_FALSE(broken.Read(&reply));
  EXPECT_THAT(rpc::FromGrpcStatus(broken.Finish()),
              Refuses(absl::StatusCode::kInvalidArgument, kReasonRequestInvalid));
  EXPECT_THAT(server.observer().rejected(), ::testing::ElementsAre(RejectReason::kShape));
  server.observer().WaitForEnded(1);
  EXPECT_EQ(server.observer().last_ended().end, SessionEnd::kStreamClosed);
  healthy.ExpectRightDraft(&bystander, 1, 4);
}

TEST(FaultsTest, WhatWasAskedBeforeAMessageThatIsNoneIsStillAnswered) {
  Gate gate;
  InProcessOptions options;
  options.model.before_step = gate.Hook();
  InProcessServer server(options);
  TestSequence sequence(1);
  OpenUnary(server.stub(), &sequence);
  BytesStream stream(server);
  gate.Close();
  v1::DraftStreamRequest draft;
  draft.set_id(4);
  *draft.mutable_draft() = sequence.NextRequest(3, 2);
  stream.Send(draft.SerializeAsString());
  gate.WaitUntilReached();
  stream.Send("\xff\xff\xff\xff");
  gate.Open();
  grpc::ByteBuffer reply;
  ASSERT_TRUE(stream.Read(&reply));
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  sequence.Commit(3);
  ExpectRightDraft(server.stub(), &sequence, 1, 2);
}

TEST(FaultsTest, AUnaryMessageThatIsNoMessageIsRefused) {
  InProcessServer server;
  TestSequence bystander(1);
  OpenUnary(server.stub(), &bystander);
  for (const char* method : {"Draft", "OpenSession", "CloseSession", "GetServerInfo"}) {
    grpc::GenericStub stub(server.NewChannel());
    grpc::ClientContext context;
    const grpc::Slice slice("\x0a\xff");  // a field that claims more bytes than there are
    grpc::ByteBuffer request(&slice, 1), reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, absl::StrCat("/aerie.v1.DraftService/", method), {}, &request, &reply,
                   [&done](grpc::Status status) { done.set_value(std::move(status)); });
    EXPECT_FALSE(done.get_future().get().ok()) << method;
  }
  ExpectRightDraft(server.stub(), &bystander, 3, 2);
}

// Not a test: the client that the next one kills.
TEST(ClientProcess, DISABLED_OpensSessionsAndWaitsToBeKilled) {
  const char* address = std::getenv("AERIE_TEST_ADDRESS");
  ASSERT_NE(address, nullptr) << "run by FaultsTest, which says where the server is";
  auto stub =
      v1::DraftService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  TestStream stream(*stub);
  std::vector<TestSequence> sequences;
  for (uint64_t id = 1; id <= 5; ++id) {
    sequences.emplace_back(id);
    stream.Open(&sequences.back());
    stream.ExpectRightDraft(&sequences.back(), 6, 3);
  }
  if (write(STDOUT_FILENO, "READY", 5) == 5) pause();
}

TEST(FaultsTest, AClientProcessThatIsKilledFreesItsSessions) {
  InProcessServer server;
  TestSequence bystander(77);
  OpenUnary(server.stub(), &bystander);
  ExpectRightDraft(server.stub(), &bystander, 3, 2);

  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const std::string variable = absl::StrCat("AERIE_TEST_ADDRESS=", server.address());
  char* const arguments[] = {const_cast<char*>("client"),
                             const_cast<char*>("--gtest_filter=ClientProcess.*"),
                             const_cast<char*>("--gtest_also_run_disabled_tests"), nullptr};
  char* const environment[] = {const_cast<char*>(variable.c_str()), nullptr};
  pid_t client = 0;
  ASSERT_EQ(posix_spawn(&client, "/proc/self/exe", &actions, nullptr, arguments, environment), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  std::string told;
  char letter = 0;
  while (told.find("READY") == std::string::npos && read(out[0], &letter, 1) == 1) told += letter;
  close(out[0]);
  EXPECT_THAT(told, ::testing::HasSubstr("READY"));
  EXPECT_GT(server.UsedPages(), 1);

  ASSERT_EQ(kill(client, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(client, &status, 0), client);
  server.observer().WaitForEnded(5);
  EXPECT_THAT(server.observer().ended(),
              Each(Field(&SessionRecord::end, SessionEnd::kStreamClosed)));
  ExpectRightDraft(server.stub(), &bystander, 1, 3);
  EXPECT_EQ(server.UsedPages(), 1) << "of the bystander's four rows";
}

TEST(FaultsTest, AReaderThatStopsHoldsUpNobodyElseAndIsFreedWithItsStream) {
  InProcessOptions options;
  options.limits.max_stream_in_flight = 4;
  InProcessServer server(options);
  auto slow_stub = v1::DraftService::NewStub(server.NewChannel());
  TestSequence slow(1);
  {
    TestStream stream(*slow_stub);
    stream.Open(&slow);
    for (int i = 0; i < 50; ++i) {  // more than are taken, and they all fit the network's buffers
      stream.SendDraft(slow.NextRequest(1, 2));
      slow.Commit(1);
    }
    TestStream other(server.stub());
    TestSequence quick(2);
    other.Open(&quick);
    for (int round = 0; round < 20; ++round) other.ExpectRightDraft(&quick, 1, 3);
    EXPECT_TRUE(other.HalfClose().ok());
    EXPECT_LE(server.rpcs().Of("DraftStream").most_unanswered, 5);
    stream.Cancel();
  }
  server.observer().WaitForEnded(2);
  EXPECT_EQ(server.UsedPages(), 0);
}

// Sends drafts of one session with a few under way until its stream ends; checks each answer.
class PumpingClient {
 public:
  PumpingClient(const InProcessServer& server, uint64_t id)
      : stub_(v1::DraftService::NewStub(server.NewChannel())), sequence_(id) {
    // Not in Run(): others may have the server draining before its thread gets that far.
    OpenUnary(*stub_, &sequence_);
  }

  void Run() {
    grpc::ClientContext context;
    auto stream = stub_->DraftStream(&context);
    std::thread reader([&] { Read(*stream); });
    TestSequence sent = sequence_;
    v1::DraftStreamRequest request;
    do {
      *request.mutable_draft() = sent.NextRequest(1, 3);
      sent.Commit(1);
      request.set_id(request.id() + 1);
    } while (stream->Write(request));
    reader.join();
    status_ = stream->Finish();
  }

  int64_t drafts() const { return drafts_; }
  const grpc::Status& status() const { return status_; }

 private:
  void Read(grpc::ClientReaderWriter<v1::DraftStreamRequest, v1::DraftStreamResponse>& stream) {
    v1::DraftStreamResponse response;
    while (stream.Read(&response)) {
      // In order and without a gap: none was lost.
      EXPECT_EQ(response.id(), static_cast<uint64_t>(++answers_));
      if (!response.has_draft()) continue;
      ++drafts_;
      sequence_.Commit(1);
      EXPECT_EQ(response.draft().length(), sequence_.length());
    }
  }

  std::unique_ptr<v1::DraftService::Stub> stub_;
  TestSequence sequence_;
  int64_t answers_ = 0, drafts_ = 0;
  grpc::Status status_;
};

TEST(FaultsTest, DrainingUnderLoadAnswersEveryRoundThatWasServed) {
  InProcessOptions options;
  options.limits.max_stream_in_flight = 8;
  options.engine.max_context = 1 << 20;
  options.model.kv_store.num_pages = 1 << 19;
  InProcessServer server(options);
  std::vector<std::unique_ptr<PumpingClient>> clients;
  std::vector<std::thread> threads;
  for (uint64_t id = 1; id <= 6; ++id) {
    clients.push_back(std::make_unique<PumpingClient>(server, id));
    threads.emplace_back([client = clients.back().get()] { client->Run(); });
  }
  server.observer().WaitForRounds(300);
  server.service().DrainStreams();
  EXPECT_TRUE(server.engine().Drain(absl::InfiniteFuture()));
  EXPECT_TRUE(server.service().AwaitStreams(absl::InfiniteFuture()));
  for (std::thread& thread : threads) thread.join();
  int64_t answered = 0, served = 0;
  for (const auto& client : clients) {
    EXPECT_THAT(rpc::FromGrpcStatus(client->status()),
                Refuses(absl::StatusCode::kUnavailable, kReasonDraining));
    answered += client->drafts();
  }
  for (const RoundRecord& round : server.observer().rounds()) {
    if (round.outcome == absl::StatusCode::kOk) ++served;
  }
  EXPECT_EQ(answered, served);
  EXPECT_GE(answered, 300);
}

}  // namespace
}  // namespace aerie
