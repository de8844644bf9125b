// Clients among each other: what one may hold, what one may have waiting, and who gets the rows of
// a pass.
#include <map>
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

SessionOptions Of(const std::string& client) { return {.client = client}; }

TEST(DraftClientsTest, HoldsEachClientToItsNumberOfSessions) {
  EngineOptions options;
  options.max_sessions_per_client = 2;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("anna"));
  driver.OpenSession(Of("anna"));
  const auto refused = driver.Open(FittingManifest(), Of("anna"));
  EXPECT_THAT(refused, Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("client \"anna\""));
  EXPECT_GT(DetailOf(refused.status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kQuota));
  EXPECT_THAT(driver.Open(FittingManifest(), Of("bert")), IsOk());
  EXPECT_THAT(driver.Open(FittingManifest(), Of("")), IsOk()) << "the nameless are one client";
  ASSERT_THAT(driver.RunClose(a), IsOk());
  EXPECT_THAT(driver.Open(FittingManifest(), Of("anna")), IsOk());
}

TEST(DraftClientsTest, HoldsEachClientToItsNumberOfWaitingCalls) {
  EngineOptions options;
  options.max_queued_per_client = 2;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("anna"));
  const std::string b = driver.OpenSession(Of("anna"));
  const std::string c = driver.OpenSession(Of("bert"));
  const auto first = driver.Draft(MakeDraftCall(a, 0, {1}, 2));
  const auto second = driver.Draft(MakeDraftCall(a, 1, {2}, 2));
  const auto third = driver.Draft(MakeDraftCall(b, 0, {3}, 2));
  EXPECT_THAT(third->value(), Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  EXPECT_GT(DetailOf(third->value().status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kQuota));
  const auto other = driver.Draft(MakeDraftCall(c, 0, {3}, 2));
  driver.Pass();
  const auto fourth = driver.Draft(MakeDraftCall(b, 0, {3}, 2));
  driver.RunAll();
  for (const auto& reply : {first, second, other, fourth}) EXPECT_THAT(reply->value(), IsOk());
}

TEST(DraftClientsTest, CountsCallsWithoutASessionForTheNamelessClient) {
  EngineOptions options;
  options.max_queued_per_client = 1;
  CoreDriver driver(options);
  DraftCall call = MakeDraftCall("", 0, {1}, 2);
  call.sequence = FittingManifest();
  const auto first = driver.Draft(call);
  const auto second = driver.Draft(call);
  EXPECT_THAT(second->value(), Refuses(StatusCode::kResourceExhausted, kReasonClientLimit));
  driver.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(driver.Run(call), IsOk());
}

TEST(DraftClientsTest, CountsEveryWayInWhichACallStopsWaiting) {
  EngineOptions options;
  options.max_queued_per_client = 3;
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("anna"));
  for (int i = 0; i < 20; ++i) {
    driver.Draft(MakeDraftCall(a, 50, {1}, 2));  // a gap
    driver.Draft(MakeDraftCall(a, 0, {}, 0));    // no pass
    DraftCall late = MakeDraftCall(a, 0, {1}, 2);
    late.deadline = driver.now + absl::Microseconds(1);
    driver.Draft(MakeDraftCall(a, 0, {1}, 2));
    driver.Draft(std::move(late));
    driver.RunAll();
    DraftCall repeat = MakeDraftCall(a, 0, {1}, 2);
    repeat.seq = static_cast<uint64_t>(i) + 1;
    EXPECT_THAT(driver.Run(repeat), IsOk());
    EXPECT_THAT(driver.Run(repeat), IsOk());
    const std::string b = driver.OpenSession(Of("anna"));
    driver.Draft(MakeDraftCall(b, 0, {1}, 2));
    driver.Draft(MakeDraftCall(b, 1, {1}, 2));
    driver.Close(b, {}, SessionEnd::kStreamClosed);
    driver.RunAll();
  }
  EXPECT_EQ(driver.core.queued(), 0);
}

TEST(DraftClientsTest, GivesClientsRowsByTheirWeights) {
  EngineOptions options;
  options.max_rows_per_pass = 40;
  options.client_weights = {{"anna", 3}};
  CoreDriver driver(options);
  std::map<int64_t, int64_t> rows;  // by the length of the prompt
  const auto anna = driver.Draft(
      MakeDraftCall(driver.OpenSession(Of("anna")), 0, std::vector<int32_t>(301, 1), 0));
  const auto bert = driver.Draft(
      MakeDraftCall(driver.OpenSession(Of("bert")), 0, std::vector<int32_t>(301, 2), 0));
  driver.Pass();
  const auto pass = driver.model.passes().back();
  ASSERT_EQ(pass.size(), 2u);
  EXPECT_EQ(pass[0].rows, 30);
  EXPECT_EQ(pass[1].rows, 10);
  driver.RunAll();
  EXPECT_THAT(anna->value(), IsOk());
  EXPECT_THAT(bert->value(), IsOk());
}

TEST(DraftClientsTest, DelaysAShortRoundByNoMoreThanOnePassForALongPrompt) {
  EngineOptions options;
  options.max_rows_per_pass = 64;
  CoreDriver driver(options);
  const std::string shorty = driver.OpenSession(Of("anna"));
  ASSERT_THAT(driver.Run(MakeDraftCall(shorty, 0, {1, 2, 3}, 0)), IsOk());
  const auto prompt = driver.Draft(
      MakeDraftCall(driver.OpenSession(Of("anna")), 0, std::vector<int32_t>(4096, 7), 1));
  int64_t length = 3;
  int passes = 0;
  while (!prompt->here()) {
    driver.Pass();  // under way when the short round arrives
    if (prompt->here()) break;
    const auto round = driver.Draft(MakeDraftCall(shorty, length, {5, 6}, 4));
    for (passes = 0; !round->here(); ++passes) ASSERT_TRUE(driver.Pass());
    ASSERT_EQ(passes, 4) << "a pass for its rows and three for its draft, as without the prompt";
    length += 2;
  }
  EXPECT_THAT(prompt->value(), IsOk());
}

}  // namespace
}  // namespace aerie
