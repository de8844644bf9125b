// A client's end of a DraftStream, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aerie/v1/draft.grpc.pb.h"
#include "tests/server/transport/in_process_server.h"

namespace aerie {

// Reads may run beside writes, as gRPC allows.
class TestStream {
 public:
  explicit TestStream(v1::DraftService::Stub& stub,
                      std::optional<std::chrono::milliseconds> deadline = std::nullopt);

  void Send(const v1::DraftStreamRequest& request);
  // Under an id that grows; gives it.
  uint64_t SendDraft(const v1::DraftRequest& request);
  // In one message of its own id; gives the ids of the requests.
  std::vector<uint64_t> SendBatch(std::vector<v1::DraftStreamRequest> requests);
  // Fails the test when the stream has ended.
  v1::DraftStreamResponse Read();
  // Opens a session and waits for its id.
  void Open(TestSequence* sequence);
  // Drafts, waits, commits and checks.
  void ExpectRightDraft(TestSequence* sequence, int rows, int k);

  // Sends no more, reads to the end (the test fails if there is something to read) and gives the
  // status.
  grpc::Status HalfClose();
  // Reads the end of a stream that the server ends.
  grpc::Status ReadEnd();
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::DraftStreamRequest, v1::DraftStreamResponse>>
      stream_;
  uint64_t next_id_ = 1;
  bool ended_ = false;

 public:
  // Cancels, unless the end has been read.
  ~TestStream();
};

}  // namespace aerie
