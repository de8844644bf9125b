// Client and load tester against the real service and engine, over a drafter made of hashes:
// whatever a row, an order or a count loses on the way changes the drafts or the sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "client/draft_client.h"
#include "client/loadtest/load_test.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

using ::testing::DoubleEq;
using ::testing::IsEmpty;

class RealServerTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  static InProcessOptions Small() {
    InProcessOptions options;
    options.engine.max_rows_per_call = 40;
    options.engine.max_rows_per_pass = 32;
    options.engine.max_context = 300;
    options.shared_memory.enabled = true;
    return options;
  }
  loadtest::LoadOptions Options() {
    loadtest::LoadOptions options;
    options.address = server_.address();
    options.transport = GetParam();
    options.deadline = absl::Seconds(60);
    options.sessions = loadtest::LoadProfile::Constant(12);
    options.requests = 24;
    options.rounds = 15;
    options.prompt_rows = 90;
    options.k = 4;
    return options;
  }

  InProcessServer server_{Small()};
};

INSTANTIATE_TEST_SUITE_P(Transports, RealServerTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(RealServerTest, LoadTesterAndServerCountTheSame) {
  loadtest::LoadOptions options = Options();
  options.accept = loadtest::AcceptProcess::ByChance({0.8, 0.6, 0.3});
  auto test = loadtest::LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  const loadtest::RunResult result = (*test)->Run(nullptr).result;
  EXPECT_EQ(result.whole.first_error, "");
  EXPECT_EQ(result.whole.sessions_compared, 24);
  EXPECT_THAT(result.whole.differences, IsEmpty());
  EXPECT_EQ(result.whole.sure.acceptance.drafts(), 24 * 16);
  EXPECT_GT(result.measured.step.max(), absl::ZeroDuration());
}

TEST_P(RealServerTest, LoadTesterAndServerCountTheSameForEveryKindOfDraft) {
  loadtest::LoadOptions tree = Options();
  tree.tree = TreeShape{.depth = 4, .top_k = 3, .total_tokens = 12};
  loadtest::LoadOptions sampled_tree = tree;
  sampled_tree.temperature = 0.8f;
  loadtest::LoadOptions sampled = Options();
  sampled.temperature = 0.8f;
  loadtest::LoadOptions adaptive = Options();
  adaptive.adaptive_k = true;
  for (loadtest::LoadOptions options : {tree, sampled_tree, sampled, adaptive}) {
    options.accept = loadtest::AcceptProcess::ByChance({0.8, 0.6, 0.3});
    options.client = "blue";
    auto test = loadtest::LoadTest::Prepare(options);
    ASSERT_TRUE(test.ok()) << test.status();
    const loadtest::RunResult result = (*test)->Run(nullptr).result;
    EXPECT_EQ(result.whole.first_error, "");
    EXPECT_EQ(result.whole.sessions_compared, 24);
    EXPECT_THAT(result.whole.differences, IsEmpty());
    EXPECT_LE(result.whole.sure.acceptance.proposed_at().size(), 4u) << "positions are levels";
    EXPECT_GT(result.whole.sure.acceptance.accepted_tokens(), 0);
  }
}

TEST_P(RealServerTest, LoadTesterAndServerCountTheSameThroughSharedMemory) {
  loadtest::LoadOptions options = Options();
  options.shared_memory = true;
  options.connections = 3;
  options.accept = loadtest::AcceptProcess::ByChance({0.8, 0.6, 0.3});
  auto test = loadtest::LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  const loadtest::RunResult result = (*test)->Run(nullptr).result;
  EXPECT_EQ(server_.shared_memory().segments(), 3);
  EXPECT_EQ(result.whole.first_error, "");
  EXPECT_EQ(result.whole.sessions_compared, 24);
  EXPECT_THAT(result.whole.differences, IsEmpty());
}

TEST_P(RealServerTest, FindsExactlyTheAcceptLengthOfACertainProcess) {
  loadtest::LoadOptions options = Options();
  options.accept = loadtest::AcceptProcess::ByChance({1.0, 1.0, 1.0, 0.0});
  auto test = loadtest::LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  const loadtest::Report report = (*test)->Run(nullptr);
  EXPECT_THAT(report.result.whole.sure.acceptance.MeanAcceptLength(), DoubleEq(4.0));
  EXPECT_EQ(loadtest::Judge(report).exit_code, 0);
}

TEST_P(RealServerTest, CountsTheSameWhenSessionsReachTheContextLimit) {
  loadtest::LoadOptions options = Options();
  options.prompt_rows = 270;
  options.accept = loadtest::AcceptProcess::ByChance({0.5});
  auto test = loadtest::LoadTest::Prepare(options);
  ASSERT_TRUE(test.ok()) << test.status();
  const loadtest::RunResult result = (*test)->Run(nullptr).result;
  EXPECT_GT(result.whole.sessions_at_context_limit, 0);
  EXPECT_EQ(result.whole.first_error, "");
  EXPECT_THAT(result.whole.differences, IsEmpty());
}

TEST_P(RealServerTest, DraftsTheSameAfterAReplayAsIfNothingHadHappened) {
  const Manifest manifest = FittingManifest();
  const std::vector<int32_t> tokens = [] {
    std::vector<int32_t> made;
    for (int32_t i = 0; i < 100; ++i) made.push_back((i * 37 + 5) % 101);
    return made;
  }();
  const OwnedRows rows = MakeRows(manifest, 0, 100);
  const auto batch = [&](int64_t first, int64_t last) -> RowBatch {
    return {absl::MakeConstSpan(tokens).subspan(static_cast<size_t>(first),
                                                static_cast<size_t>(last - first)),
            rows.view.Slice(first, last - first)};
  };
  const auto call = [&](int64_t first, int64_t last) {
    DraftInput input;
    input.base_length = first;
    input.tokens = batch(first, last).tokens;
    input.rows = batch(first, last).rows;
    input.k = 4;
    return input;
  };
  auto client = DraftClient::Create(server_.address(),
                                    {.transport = GetParam(), .deadline = absl::Seconds(60)});
  ASSERT_TRUE(client.ok()) << client.status();
  SessionSettings settings;
  settings.row_source = [&](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> {
    return batch(first, last);
  };
  auto session = (*client)->Open(manifest, settings);
  ASSERT_TRUE(session.ok()) << session.status();
  const DraftOutcome before = (*session)->Draft(call(0, 95));
  ASSERT_TRUE(before.status.ok()) << before.status;
  EXPECT_EQ(before.tree, DraftAlone(batch(0, 95).tokens, batch(0, 95).rows, 4));

  absl::Notification closed;
  server_.engine().Close((*session)->id(), {}, SessionEnd::kClosed,
                         [&](absl::StatusOr<AcceptanceRecord>) { closed.Notify(); });
  closed.WaitForNotification();
  const DraftOutcome after = (*session)->Draft(call(95, 100));
  ASSERT_TRUE(after.status.ok()) << after.status;
  EXPECT_EQ(after.resyncs, 1);
  EXPECT_EQ(after.tree, DraftAlone(tokens, rows.view, 4));
}

TEST(RealServerMemoryTest, SessionsThatKeepMakingRoomForEachOtherLoseNothingButTime) {
  InProcessOptions small;
  small.engine.max_context = 100;
  small.model.kv_store.num_pages = 40;  // of 4 rows: one and a half of the sessions
  InProcessServer server(small);
  const Manifest manifest = FittingManifest();
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 100; ++i) tokens.push_back((i * 37 + 5) % 101);
  const OwnedRows rows = MakeRows(manifest, 0, 100);
  const auto batch = [&](int64_t first, int64_t last) -> RowBatch {
    return {absl::MakeConstSpan(tokens).subspan(static_cast<size_t>(first),
                                                static_cast<size_t>(last - first)),
            rows.view.Slice(first, last - first)};
  };
  auto client = DraftClient::Create(server.address(), {.deadline = absl::Seconds(60)});
  ASSERT_TRUE(client.ok()) << client.status();
  SessionSettings settings;
  settings.row_source = [&](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> {
    return batch(first, last);
  };
  std::vector<std::unique_ptr<DraftSession>> sessions;
  for (int i = 0; i < 3; ++i) {
    auto session = (*client)->Open(manifest, settings);
    ASSERT_TRUE(session.ok()) << session.status();
    sessions.push_back(*std::move(session));
  }
  int resyncs = 0;
  for (int64_t first = 0; first < 90; first += 30) {
    for (const auto& session : sessions) {
      DraftInput input;
      input.base_length = first;
      input.tokens = batch(first, first + 30).tokens;
      input.rows = batch(first, first + 30).rows;
      input.k = 4;
      const DraftOutcome outcome = session->Draft(input);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.tree,
                DraftAlone(batch(0, first + 30).tokens, batch(0, first + 30).rows, 4));
      resyncs += outcome.resyncs;
    }
  }
  EXPECT_GT(resyncs, 0);
  EXPECT_LE(static_cast<size_t>(resyncs), server.observer().evicted().size());
}

TEST_P(RealServerTest, DraftsStatelessly) {
  const Manifest manifest = FittingManifest();
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5};
  const OwnedRows rows = MakeRows(manifest, 0, 5);
  auto client = DraftClient::Create(server_.address(),
                                    {.transport = GetParam(), .deadline = absl::Seconds(60)});
  ASSERT_TRUE(client.ok()) << client.status();
  const DraftOutcome outcome = (*client)->DraftOnce(manifest, tokens, rows.view, 3);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.tree, DraftAlone(tokens, rows.view, 3));
}

}  // namespace
}  // namespace aerie
