// Very many at once: a thousand streams that all draft, beside ten thousand sessions that do not.
#include <memory>
#include <vector>

#include "common/rpc/codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_stream.h"

namespace aerie {
namespace {

constexpr uint64_t kIdle = 10'000;
constexpr uint64_t kStreams = 1'000;

TEST(ManyClientsTest, AThousandStreamsDraftBesideTenThousandIdleSessions) {
  InProcessOptions options;
  options.engine.max_sessions = kIdle + kStreams;
  options.engine.max_queued = kStreams;
  options.model.kv_store.num_pages = 2 * (kIdle + kStreams);
  InProcessServer server(options);

  std::vector<TestSequence> idle;
  for (uint64_t id = 0; id < kIdle; ++id) {
    idle.emplace_back(id);
    OpenUnary(server.stub(), &idle.back());
    grpc::ClientContext context;
    v1::DraftResponse response;
    ASSERT_TRUE(server.stub().Draft(&context, idle.back().NextRequest(3, 0), &response).ok());
    idle.back().Commit(3);
  }
  EXPECT_EQ(server.UsedPages(), static_cast<int64_t>(kIdle)) << "a page holds four rows";

  std::vector<TestSequence> busy;
  std::vector<std::unique_ptr<TestStream>> streams;
  for (uint64_t id = 0; id < kStreams; ++id) {
    busy.emplace_back(kIdle + id);
    streams.push_back(std::make_unique<TestStream>(server.stub()));
    streams.back()->Open(&busy.back());
  }
  // All are under way before the first answer is read.
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kStreams; ++i) streams[i]->SendDraft(busy[i].NextRequest(2, 3));
    for (uint64_t i = 0; i < kStreams; ++i) {
      const v1::DraftStreamResponse response = streams[i]->Read();
      ASSERT_TRUE(response.has_draft()) << response.ShortDebugString();
      busy[i].Commit(2);
      // One in ten, since working out what is right takes longer than drafting it.
      if (i % 10 != 0) continue;
      EXPECT_EQ(rpc::DecodeDraftTree(response.draft().tree()).value(), busy[i].Expected(3));
    }
  }
  EXPECT_EQ(server.observer().opened(), static_cast<int32_t>(kIdle + kStreams));

  // Who was idle all the while lost nothing.
  EXPECT_THAT(server.observer().evicted(), ::testing::IsEmpty());
  for (uint64_t id = 0; id < kIdle; id += 500) ExpectRightDraft(server.stub(), &idle[id], 1, 2);

  streams.clear();
  server.observer().WaitForEnded(kStreams);
  EXPECT_EQ(server.UsedPages(), static_cast<int64_t>(kIdle));
}

}  // namespace
}  // namespace aerie
