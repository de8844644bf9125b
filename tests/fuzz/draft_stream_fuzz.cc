// Any bytes as the messages of a DraftStream, over a real socket: each request gets one answer with
// its number, a message that is none ends the stream and says so, and nothing of it stays.
//
// Beside it a client that keeps to the contract drafts, and must not notice.
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/status_codec.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "server/transport/draft_messages.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/honest_worker.h"
#include "tests/server/transport/in_process_server.h"

namespace {

using namespace aerie;  // NOLINT: it is all that this file is about

constexpr size_t kMaxMessageBytes = 4096;

// A stream of bytes, one message after the other.
class RawStream {
 public:
  explicit RawStream(std::shared_ptr<grpc::Channel> channel) : stub_(std::move(channel)) {
    stream_ = stub_.PrepareCall(&context_, "/aerie.v1.DraftService/DraftStream", &queue_);
    stream_->StartCall(nullptr);
    Wait();
  }
  ~RawStream() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Write(const std::string& message) {
    const grpc::Slice slice(message);
    stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Wait();
  }
  bool Read(v1::DraftStreamResponse* response) {
    grpc::ByteBuffer bytes;
    stream_->Read(&bytes, nullptr);
    if (!Wait()) return false;
    const grpc::Status read =
        grpc::SerializationTraits<v1::DraftStreamResponse>::Deserialize(&bytes, response);
    AERIE_CHECK(read.ok()) << read.error_message();
    return true;
  }
  void WritesDone() {
    stream_->WritesDone(nullptr);
    Wait();
  }
  absl::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Wait();
    return rpc::FromGrpcStatus(status);
  }

 private:
  // Only one thing is under way at a time.
  bool Wait() {
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

InProcessOptions Options() {
  InProcessOptions options;
  options.engine.max_k = 8;
  options.engine.max_rows_per_call = 12;
  options.engine.max_sessions = 4;
  options.engine.max_context = 40;
  options.model.spec.fc_digest = kScriptFcDigest;
  options.limits.max_message_bytes = kMaxMessageBytes;
  return options;
}

// One for many inputs; a new one now and then, for its observers keep all that they see.
InProcessServer& Server(bool next_input = false) {
  // Made first, so that it is there for what the server reports at the end of the process.
  static const testing::UnitTest* const reports = testing::UnitTest::GetInstance();
  static std::unique_ptr<InProcessServer> server;
  static int inputs = 0;
  AERIE_CHECK(reports != nullptr);
  if (server == nullptr || (next_input && ++inputs % 256 == 0)) {
    server.reset();
    server = std::make_unique<InProcessServer>(Options());
  }
  return *server;
}

void CheckError(const v1::ErrorDetail& error) {
  AERIE_CHECK(!error.reason().empty()) << error.ShortDebugString();
  AERIE_CHECK(error.message().find("expected") != std::string::npos) << error.message();
}

// What was told of a stream whose last message was not one.
void CheckMalformed(RawStream* stream) {
  v1::DraftStreamResponse response;
  AERIE_CHECK(!stream->Read(&response)) << response.ShortDebugString();
  const absl::Status end = stream->Finish();
  AERIE_CHECK(absl::IsInvalidArgument(end)) << end.ToString();
  AERIE_CHECK(DetailOf(end).reason == kReasonRequestInvalid) << end.ToString();
}

// The requests that are answered, each by itself: of a batch that is taken apart, those within.
std::vector<const v1::DraftStreamRequest*> Answered(const v1::DraftStreamRequest& message,
                                                    size_t bytes) {
  const auto& batch = message.batch().requests();
  const int most = Options().limits.max_stream_in_flight;
  int64_t held = static_cast<int64_t>(bytes);
  for (const v1::DraftStreamRequest& each : batch) {
    held += BytesInSharedMemory(each.draft(), int64_t{kMaxMessageBytes});
  }
  if (batch.empty() || batch.size() > most || held > static_cast<int64_t>(kMaxMessageBytes))
    return {&message};
  std::vector<const v1::DraftStreamRequest*> out;
  for (const v1::DraftStreamRequest& each : batch) out.push_back(&each);
  return out;
}

// Reads the answers to one message of `bytes` bytes. They come in any order, and a damaged batch
// may use an id twice: then they are told apart by their kind, and errors, which have none, are for
// the requests that are left.
void ReadAnswers(RawStream* stream, const v1::DraftStreamRequest& message, size_t bytes,
                 std::vector<std::string>* ids) {
  std::vector<const v1::DraftStreamRequest*> left = Answered(message, bytes);
  std::multiset<uint64_t> refused;
  while (left.size() > refused.size()) {
    v1::DraftStreamResponse response;
    AERIE_CHECK(stream->Read(&response));
    if (bytes > kMaxMessageBytes) {
      AERIE_CHECK(response.error().reason() == kReasonMessageTooLarge) << bytes;
    } else if (response.has_error()) {
      CheckError(response.error());
    }
    if (response.has_open_session()) ids->push_back(response.open_session().session_id());
    if (response.has_error()) {
      refused.insert(response.id());
      continue;
    }
    const auto found = std::find_if(left.begin(), left.end(), [&](const auto* request) {
      // Both lists begin with open, draft, close.
      return request->id() == response.id() && static_cast<int>(response.response_case()) ==
                                                   static_cast<int>(request->request_case());
    });
    AERIE_CHECK(found != left.end()) << response.ShortDebugString();
    left.erase(found);
  }
  for (const v1::DraftStreamRequest* request : left) {
    const auto found = refused.find(request->id());
    AERIE_CHECK(found != refused.end()) << request->ShortDebugString();
    refused.erase(found);
  }
}

void Converse(const CallScript& script) {
  RawStream stream(Server().NewChannel());
  std::vector<std::string> ids;
  for (const std::string& frame : script.frames) {
    v1::DraftStreamRequest request;
    std::string bytes = frame;
    const bool sound = request.ParseFromString(frame);
    if (sound) {
      NameSessions(ids, &request);
      bytes = request.SerializeAsString();
    }
    // Twice the limit ends the stream, as the contract says.
    if (bytes.size() >= 2 * kMaxMessageBytes) continue;
    const bool written = stream.Write(bytes);
    if (!sound) return CheckMalformed(&stream);
    AERIE_CHECK(written);
    ReadAnswers(&stream, request, bytes.size(), &ids);
  }
  stream.WritesDone();
  v1::DraftStreamResponse response;
  AERIE_CHECK(!stream.Read(&response)) << response.ShortDebugString();
  const absl::Status end = stream.Finish();
  AERIE_CHECK(end.ok()) << end.ToString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Text that is not UTF-8 would be told of on standard error.
  static const google::protobuf::LogSilencer silence;
  TestSequence bystander(7);
  OpenUnary(Server(/*next_input=*/true).stub(), &bystander);
  ExpectRightDraft(Server().stub(), &bystander, 3, 4);
  const int64_t before = Server().UsedPages();
  Converse(ReadScript({reinterpret_cast<const char*>(data), size}));
  AERIE_CHECK(Server().UsedPages() == before) << Server().UsedPages() << " and " << before;
  ExpectRightDraft(Server().stub(), &bystander, 2, 5);
  Server().engine().Close(bystander.session_id, {}, SessionEnd::kClosed,
                          [](absl::StatusOr<AcceptanceRecord>) {});
  // What else is expected is reported to the test library, which runs no test here.
  AERIE_CHECK(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return MutateScript(data, size, max_size, seed);
}
