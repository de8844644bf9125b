// One drafter for several targets: what the sessions of each may have together, and that the others
// do not feel it.
#include "server/engine/target_quotas.h"

#include <memory>
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

EngineOptions With(const TargetQuotaMap& quotas) {
  EngineOptions options;
  options.target_quotas = quotas;
  options.target_shares = std::make_shared<TargetQuotas>(quotas);
  return options;
}

Manifest Of(const std::string& target) {
  Manifest manifest = FittingManifest();
  manifest.target_id = target;
  return manifest;
}

DraftCall Stateless(const std::string& target, int rows) {
  DraftCall call = MakeDraftCall("", 0, std::vector<int32_t>(static_cast<size_t>(rows), 1), 2);
  call.sequence = Of(target);
  return call;
}

TargetUsage UsageOf(const EngineOptions& options, const std::string& quota) {
  for (const TargetUsage& usage : options.target_shares->Usage()) {
    if (usage.quota == quota) return usage;
  }
  ADD_FAILURE() << "no quota " << quota;
  return {};
}

TEST(TargetQuotasTest, HoldATargetToItsNumberOfSessionsAndNoOther) {
  const EngineOptions options = With({{"big", {.sessions = 2}}});
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("big"));
  driver.OpenSession(Of("big"));
  const auto refused = driver.Open(Of("big"));
  EXPECT_THAT(refused, Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("the quota of target \"big\" is used up by 2 sessions; expected fewer;"));
  EXPECT_GT(DetailOf(refused.status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kTargetQuota));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(driver.Open(Of("small")), IsOk());
  ASSERT_THAT(driver.RunClose(a), IsOk());
  EXPECT_THAT(driver.Open(Of("big")), IsOk());
  EXPECT_EQ(UsageOf(options, "big").sessions, 2);
  EXPECT_EQ(UsageOf(options, "big").refused_sessions, 1);
}

TEST(TargetQuotasTest, HoldTheTargetsThatAreNotNamedTogether) {
  CoreDriver driver(With({{"big", {.sessions = 1}}, {kOtherTargets, {.sessions = 2}}}));
  EXPECT_THAT(driver.Open(Of("a")), IsOk());
  EXPECT_THAT(driver.Open(Of("b")), IsOk());
  EXPECT_THAT(driver.Open(Of("c")), Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  EXPECT_THAT(driver.Open(Of("big")), IsOk());
}

TEST(TargetQuotasTest, GiveTheClientsPlaceBackWhenTheTargetHasNone) {
  EngineOptions options = With({{"big", {.sessions = 1}}});
  options.max_sessions_per_client = 2;
  CoreDriver driver(options);
  EXPECT_THAT(driver.Open(Of("big"), {.client = "anna"}), IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(driver.Open(Of("big"), {.client = "anna"}),
                Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  }
  EXPECT_THAT(driver.Open(Of("small"), {.client = "anna"}), IsOk());
}

TEST(TargetQuotasTest, HoldATargetToItsRowsASecondAndNoOther) {
  const EngineOptions options = With({{"big", {.rows_per_second = 10}}});
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("big"));
  const std::string b = driver.OpenSession(Of("big"));
  const std::string other = driver.OpenSession(Of("small"));
  ASSERT_THAT(driver.Run(MakeDraftCall(a, 0, std::vector<int32_t>(12, 1), 2)), IsOk());
  const auto refused = driver.Run(MakeDraftCall(b, 0, {1}, 2));
  EXPECT_THAT(refused, Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  const absl::Duration wait = DetailOf(refused.status()).retry_after.value();
  EXPECT_GT(wait, absl::Milliseconds(200));
  EXPECT_LE(wait, absl::Milliseconds(300));
  EXPECT_THAT(driver.observer.rejected(), ElementsAre(RejectReason::kTargetQuota));
  EXPECT_THAT(driver.Run(MakeDraftCall(other, 0, std::vector<int32_t>(50, 1), 2)), IsOk());
  // What was refused is as it was, and comes through once its time has come.
  driver.now += wait;
  EXPECT_THAT(driver.Run(MakeDraftCall(b, 0, {1}, 2)), IsOk());
  EXPECT_EQ(UsageOf(options, "big").rows, 13);
  EXPECT_EQ(UsageOf(options, "big").refused_calls, 1);
}

TEST(TargetQuotasTest, CountNoRowsOfRepeatedAndOfRefusedCalls) {
  const EngineOptions options = With({{"big", {.rows_per_second = 1000}}});
  CoreDriver driver(options);
  const std::string a = driver.OpenSession(Of("big"));
  DraftCall call = MakeDraftCall(a, 0, {1, 2, 3}, 2);
  call.seq = 1;
  EXPECT_THAT(driver.Run(call), IsOk());
  EXPECT_THAT(driver.Run(call), IsOk());
  EXPECT_FALSE(driver.Run(MakeDraftCall(a, 50, {1, 2}, 2)).ok());
  EXPECT_EQ(UsageOf(options, "big").rows, 3);
}

TEST(TargetQuotasTest, CountCallsWithoutASession) {
  const EngineOptions options = With({{"big", {.sessions = 1, .rows_per_second = 5}}});
  CoreDriver driver(options);
  const auto first = driver.Draft(Stateless("big", 5));
  const auto second = driver.Draft(Stateless("big", 1));
  EXPECT_THAT(second->value(), Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  driver.RunAll();
  EXPECT_THAT(first->value(), IsOk());
  EXPECT_THAT(driver.Run(Stateless("big", 1)),
              Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  EXPECT_EQ(UsageOf(options, "big").sessions, 0);
  driver.now += absl::Seconds(2);
  EXPECT_THAT(driver.Run(Stateless("big", 1)), IsOk());
}

TEST(TargetQuotasTest, AreTheServersWhicheverDrafterIsAsked) {
  const EngineOptions options = With({{"big", {.sessions = 1}}});
  CoreDriver one(options), two(options);
  const std::string a = one.OpenSession(Of("big"));
  EXPECT_THAT(two.Open(Of("big")), Refuses(StatusCode::kResourceExhausted, kReasonTargetLimit));
  ASSERT_THAT(one.RunClose(a), IsOk());
  EXPECT_THAT(two.Open(Of("big")), IsOk());
}

TEST(TargetQuotasTest, GetTheirPlacesBackHoweverSessionsEnd) {
  const EngineOptions options = With({{"big", {.sessions = 3}}});
  {
    CoreDriver driver(options);
    driver.OpenSession(Of("big"));
    driver.now += options.session_lease + absl::Seconds(1);
    driver.core.ExpireLeases(driver.now);
    EXPECT_EQ(UsageOf(options, "big").sessions, 0);
    driver.RunClose(driver.OpenSession(Of("big")), {}).IgnoreError();
    const std::string streamed = driver.OpenSession(Of("big"));
    driver.Draft(MakeDraftCall(streamed, 0, {1}, 2));
    driver.Close(streamed, {}, SessionEnd::kStreamClosed);
    driver.RunAll();
    EXPECT_EQ(UsageOf(options, "big").sessions, 0);
    driver.OpenSession(Of("big"));
  }
  EXPECT_EQ(UsageOf(options, "big").sessions, 0) << "the server was shut down";
}

struct InvalidQuota {
  std::string name;
  TargetQuotaMap quotas;
  std::string message;
};

class InvalidTargetQuotasTest : public testing::TestWithParam<InvalidQuota> {};

TEST_P(InvalidTargetQuotasTest, AreRefusedByTargetAndValue) {
  const absl::Status status = With(GetParam().quotas).Validate();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, InvalidTargetQuotasTest,
    testing::ValuesIn(std::vector<InvalidQuota>{
        {"OfNobody", {{"", {.sessions = 1}}}, "--target-quota names no target; expected"},
        {"OfNothing", {{"a", {}}}, "--target-quota gives \"a\" 0 sessions and 0 rows a second;"},
        {"BelowZero", {{"a", {.sessions = -1}}}, "--target-quota gives \"a\" -1 sessions"},
    }),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
