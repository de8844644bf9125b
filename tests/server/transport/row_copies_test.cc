// How often the bytes of a call's rows are copied on their way from the wire to the model. A
// program of its own, because it replaces operator new: where bytes go, something as large as they
// are has been allocated, and the model must read them there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/rpc/codec.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/shared_memory_calls.h"
#include "tests/server/transport/test_segment.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace {

// What is smaller holds no call of these tests: gRPC keeps bytes in slices of 1 MiB at most.
constexpr size_t kLarge = 2 << 20;
constexpr int kMostBlocks = 64;

struct Block {
  const char* memory = nullptr;
  size_t bytes = 0;
};
Block blocks[kMostBlocks];
std::atomic<int> block_count = 0;

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  if (bytes >= kLarge) {
    const int index = block_count++;
    if (index >= kMostBlocks) std::abort();
    blocks[index] = {static_cast<const char*>(memory), bytes};
  }
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace aerie {
namespace {

constexpr int kRows = 192;

// Rows of 12288 elements: 9 MiB of them in float32, 2.25 MiB in fp8.
DrafterSpec WideSpec() {
  DrafterSpec spec = FakeSpec();
  spec.target_hidden_size = 4096;
  return spec;
}

Manifest WideManifest(bool fp8) {
  Manifest manifest = FittingManifest(WideSpec(), fp8 ? DType::kBF16 : DType::kF32);
  manifest.fp8 = fp8;
  return manifest;
}

// Where the model found the rows.
class RowsSeen {
 public:
  std::function<void(absl::Span<const StepSequence>)> Hook() {
    return [this](absl::Span<const StepSequence> batch) {
      absl::MutexLock lock(&mutex_);
      for (const StepSequence& part : batch) {
        if (part.IsExtend()) seen_.push_back(part.aux.bytes());
      }
    };
  }
  std::vector<std::string_view> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(seen_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string_view> seen_;
};

class RowCopiesTest : public testing::Test {
 protected:
  static InProcessOptions Options(RowsSeen* seen) {
    InProcessOptions options = Allowed();
    options.model.spec = WideSpec();
    options.model.before_step = seen->Hook();
    return options;
  }

  v1::DraftRequest Call(bool fp8) {
    const Manifest manifest = WideManifest(fp8);
    v1::OpenSessionRequest open;
    rpc::EncodeManifest(manifest, open.mutable_manifest());
    grpc::ClientContext context;
    v1::OpenSessionResponse opened;
    EXPECT_TRUE(server_.stub().OpenSession(&context, open, &opened).ok());
    v1::DraftRequest call;
    call.set_session_id(opened.session_id());
    const OwnedRows rows = MakeRows(manifest, 0, kRows, 3);
    rpc::EncodeHiddenStates(rows.view, manifest, call.mutable_hidden_states());
    for (int i = 0; i < kRows; ++i) call.add_token_ids(1);
    call.set_k(1);
    return call;
  }

  // The large blocks that `send` has allocated, the server's and its own. The model must have read
  // all rows in the last of them.
  template <typename Send>
  int BlocksOf(Send send) {
    seen_.Take();
    const int before = block_count;
    send();
    const int after = block_count;
    EXPECT_GT(after, before);
    const Block& last = blocks[after - 1];
    int64_t rows = 0;
    for (const std::string_view bytes : seen_.Take()) {
      EXPECT_GE(bytes.data(), last.memory);
      EXPECT_LE(bytes.data() + bytes.size(), last.memory + last.bytes);
      rows += static_cast<int64_t>(bytes.size());
    }
    EXPECT_GE(rows, int64_t{kRows} * 12288 * 2);
    return after - before;
  }
  int BlocksOfUnary(const v1::DraftRequest& call) {
    return BlocksOf([&] {
      v1::DraftResponse response;
      EXPECT_THAT(Draft(server_.stub(), call, &response), IsOk());
    });
  }
  int BlocksOfStream(const v1::DraftRequest& call) {
    grpc::ClientContext context;
    const auto stream = server_.stub().DraftStream(&context);
    v1::DraftStreamRequest request;
    request.set_id(1);
    *request.mutable_draft() = call;
    const int count = BlocksOf([&] {
      v1::DraftStreamResponse response;
      EXPECT_TRUE(stream->Write(request));
      EXPECT_TRUE(stream->Read(&response));
      EXPECT_TRUE(response.has_draft()) << response.error().message();
    });
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    return count;
  }

  RowsSeen seen_;
  InProcessServer server_{Options(&seen_)};
};

TEST_F(RowCopiesTest, TheModelReadsInlineRowsWhereProtobufHasPutThem) {
  const v1::DraftRequest call = Call(/*fp8=*/false);
  EXPECT_EQ(BlocksOfUnary(call), 1);
  EXPECT_EQ(BlocksOfStream(Call(/*fp8=*/false)), 1);
}

TEST_F(RowCopiesTest, Fp8RowsAreUnpackedOnce) {
  EXPECT_EQ(BlocksOfUnary(Call(/*fp8=*/true)), 2);
  EXPECT_EQ(BlocksOfStream(Call(/*fp8=*/true)), 2);
}

TEST_F(RowCopiesTest, RowsInSharedMemoryAreCopiedOutOnce) {
  TestSegment segment({.size = 16 << 20});
  const std::string id = Registered(server_.stub(), segment);
  EXPECT_EQ(BlocksOfUnary(Moved(Call(/*fp8=*/false), segment, id, 64, 1)), 1);
  EXPECT_EQ(BlocksOfStream(Moved(Call(/*fp8=*/false), segment, id, 64, 2)), 1);
}

}  // namespace
}  // namespace aerie
