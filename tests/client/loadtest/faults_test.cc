// Faults on purpose beside a load, on the real service and engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/loadtest/load_test.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"
#include "tests/server/transport/in_process_server.h"

namespace aerie::loadtest {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

LoadOptions OptionsFor(const std::string& address) {
  LoadOptions options;
  options.address = address;
  options.deadline = absl::Seconds(60);
  options.sessions = LoadProfile::Constant(3);
  options.requests = 6;
  options.rounds = 10;
  options.prompt_rows = 20;
  options.accept = AcceptProcess::ByChance({0.8, 0.6});
  return options;
}

Report RunLoad(const LoadOptions& options) {
  auto test = LoadTest::Prepare(options);
  EXPECT_TRUE(test.ok()) << test.status();
  return (*test)->Run(nullptr);
}

TEST(FaultsTest, AreAnsweredAsTheyMustBeAndChangeNothingBesideThem) {
  InProcessServer server{InProcessOptions()};
  LoadOptions options = OptionsFor(server.address());
  const WholeStats without = RunLoad(options).result.whole;
  EXPECT_THAT(without.faults, IsEmpty());
  options.faults = {
      .cancel = 0.1, .deadline = 0.1, .slow_reader = 0.1, .reconnect = 0.1, .malformed = 0.15};
  const Report report = RunLoad(options);
  const WholeStats& with = report.result.whole;
  ASSERT_EQ(with.faults.size(), 5u) << "each kind was drawn";
  for (const auto& [kind, tally] : with.faults) {
    EXPECT_EQ(tally.injected, tally.as_expected) << kind << ": " << tally.first_surprise;
  }
  EXPECT_THAT(with.faults.at("malformed").by_code, Not(Contains(Pair("OK", _))));
  EXPECT_EQ(with.sure.acceptance, without.sure.acceptance);
  EXPECT_EQ(with.sure.committed_tokens, without.sure.committed_tokens);
  EXPECT_EQ(with.sure.rows, without.sure.rows);
  EXPECT_EQ(with.sessions_compared, 6);
  EXPECT_THAT(with.differences, IsEmpty());
  EXPECT_GT(with.unsure.calls, 0);
  EXPECT_EQ(Judge(report).exit_code, 0);
}

TEST(FaultsTest, OneThatIsAnsweredOtherwiseIsTold) {
  FakeDraftService service;
  TestServer server(&service);
  // Takes every token for its own, so it finds nothing wrong with a foreign one.
  LoadOptions options = OptionsFor(server.address());
  service.before_draft = [](const v1::DraftRequest& request) {
    return request.token_ids_size() > 0 && request.token_ids(0) >= FakeDraftService::kVocabulary
               ? absl::UnknownError("what is this")
               : absl::OkStatus();
  };
  options.faults.malformed = 1.0;
  const Report report = RunLoad(options);
  const FaultTally& tally = report.result.whole.faults.at("malformed");
  EXPECT_GT(tally.injected, tally.as_expected);
  EXPECT_THAT(tally.first_surprise, HasSubstr("what is this"));
  EXPECT_EQ(Judge(report).exit_code, 1);
  EXPECT_EQ(report.result.whole.error_count(), 0) << "the load beside it went well";
}

}  // namespace
}  // namespace aerie::loadtest
