// A client's traceparent and its wish for detail, at the real service.
#include <string>

#include "client/draft_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

class TraceTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  // The record of a session with these options: a prompt, and a closing call that keeps nothing of
  // what was drafted.
  AcceptanceRecord Play(const SessionOptions& options) {
    auto client = DraftClient::Create(server_.address(),
                                      {.transport = GetParam(), .deadline = absl::Seconds(60)});
    EXPECT_THAT(client, IsOk());
    auto session = (*client)->Open(FittingManifest(), {.options = options});
    EXPECT_THAT(session, IsOk());
    const OwnedRows rows = MakeRows(FittingManifest(), 0, 3);
    const std::vector<int32_t> tokens = {1, 2, 3};
    const DraftOutcome outcome =
        (*session)->Draft({.base_length = 0, .tokens = tokens, .rows = rows.view, .k = 4});
    EXPECT_THAT(outcome.status, IsOk());
    const std::vector<int32_t> last = {(outcome.tree.tokens.front() + 1) % 101};
    auto record = (*session)->Close(last);
    EXPECT_THAT(record, IsOk());
    return record.ok() ? *record : AcceptanceRecord();
  }

  InProcessServer server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, TraceTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         [](const auto& test) {
                           return test.param == TransportKind::kUnary ? "Unary" : "Stream";
                         });

TEST_P(TraceTest, ReachesTheRecordOfTheSession) {
  Play({.traceparent = kTrace});
  EXPECT_EQ(server_.observer().last_ended().facts.traceparent, kTrace);
  EXPECT_EQ(server_.rpcs().traces_ignored(), 0);
}

TEST_P(TraceTest, ThatCannotBeSentCostsNothingButItself) {
  Play({.traceparent = "broken\nline"});
  EXPECT_EQ(server_.observer().last_ended().facts.traceparent, "");
}

TEST_P(TraceTest, ARecordListsItsStepsWhenTheSessionAsksForThem) {
  const AcceptanceRecord record = Play({.acceptance_detail = true});
  EXPECT_THAT(record.per_step_accepted, ::testing::ElementsAre(0));
  EXPECT_THAT(record.per_step_drafted, ::testing::ElementsAre(4));
  EXPECT_THAT(Play({}).per_step_accepted, ::testing::IsEmpty());
}

}  // namespace
}  // namespace aerie
