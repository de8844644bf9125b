#include "server/engine/session_options.h"

#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/kv_limits.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

constexpr KvStore kStore = {.page_rows = 4, .num_pages = 4096, .page_bytes = 256};

absl::StatusOr<SessionOptions> Settle(const SessionOptions& asked) {
  return SettleOptions(asked, EngineOptions(), FakeSpec(), kStore);
}

TEST(SessionOptionsTest, FillsInWhatIsLeftOpen) {
  const auto plain = Settle({});
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->max_k, 16);
  EXPECT_EQ(plain->top_m, 0) << "nothing is drawn";
  const auto sampled = Settle({.temperature = 0.7f});
  ASSERT_THAT(sampled, IsOk());
  EXPECT_EQ(sampled->top_m, 61) << "the whole draft vocabulary, as it is below 64";
  DrafterSpec large = FakeSpec();
  large.draft_vocab_size = 100;
  EXPECT_EQ(SettleOptions({.temperature = 0.7f}, {}, large, kStore)->top_m, 64);
  EXPECT_EQ(Settle({.temperature = 0.7f, .top_m = 9})->top_m, 9);
}

TEST(SessionOptionsTest, TakesTreesUpToTheirLimits) {
  EXPECT_THAT(Settle({.tree = TreeShape{5, 4, 16}}), IsOk());
  EXPECT_THAT(Settle({.tree = TreeShape{1, 2, 2}}), IsOk());
  EXPECT_THAT(Settle({.tree = TreeShape{2, 2, 6}}), IsOk());
  EXPECT_THAT(Settle({.tree = TreeShape{16, 2, 16}}), IsOk());
  EXPECT_THAT(Settle({.tree = TreeShape{2, 2, 4}, .temperature = 1.0f}), IsOk());
  EXPECT_THAT(Settle({.tree = TreeShape{2, 3, 6}, .temperature = 1.0f, .top_m = 3}), IsOk());
}

struct ContradictionCase {
  std::string name;
  SessionOptions options;
  std::vector<std::string> words;  // both sides of it
};

class ContradictionTest : public ::testing::TestWithParam<ContradictionCase> {};

TEST_P(ContradictionTest, NamesBothSides) {
  const auto settled = Settle(GetParam().options);
  EXPECT_THAT(settled, Refuses(absl::StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  for (const std::string& words : GetParam().words) {
    EXPECT_THAT(std::string(settled.status().message()), HasSubstr(words));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ContradictionTest,
    ::testing::ValuesIn(std::vector<ContradictionCase>{
        // What contradicts itself on every server is common/session_options_test's matter; here is
        // what meets a limit of this one, or a value that it filled in.
        {"ATreeOfWidthOne", {.tree = TreeShape{3, 1, 3}}, {"options.tree.top_k is 1"}},
        {"WiderThanTheVocabulary",
         {.tree = TreeShape{1, 62, 10}},
         {"options.tree.top_k is 62", "at most 61"}},
        {"MoreTokensThanTheServersMaxK",
         {.tree = TreeShape{3, 4, 17}},
         {"total_tokens is 17", "max_k is 16"}},
        {"MoreTokensThanTheServersMaxKWhateverIsAsked",
         {.max_k = 99, .tree = TreeShape{3, 4, 17}},
         {"total_tokens is 17", "max_k is 16"}},
        {"MoreToDrawFromThanThereIs",
         {.temperature = 1.0f, .top_m = 62},
         {"options.sampling.top_m is 62", "1..61"}},
        {"StartAtTheContextLimit", {.start = 8192}, {"start is 8192", "0..8191"}},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SessionOptionsTest, RefusesATreeThatCouldNeverFitBesideAFullContext) {
  EngineOptions engine;
  engine.max_context = 32;
  const KvStore store = {.page_rows = 4, .num_pages = 12, .page_bytes = 256};
  ASSERT_THAT(CheckKvFits(engine, store), IsOk());
  EXPECT_THAT(SettleOptions({}, engine, FakeSpec(), store), IsOk());
  const auto tree = SettleOptions({.tree = TreeShape{5, 8, 16}}, engine, FakeSpec(), store);
  EXPECT_THAT(tree, Refuses(absl::StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  EXPECT_THAT(std::string(tree.status().message()),
              HasSubstr("up to 32 rows, which with --max-context 32 takes 16 pages"));
}

TEST(KvLimitsTest, HoldsAWholeContextAndADraft) {
  EngineOptions options;
  options.max_context = 100;
  options.max_k = 9;
  EXPECT_EQ(MostPagesOfSession(options, 4, 8), 27);
  EXPECT_THAT(CheckKvFits(options, {.page_rows = 4, .num_pages = 27, .page_bytes = 10}), IsOk());
  const absl::Status small =
      CheckKvFits(options, {.page_rows = 4, .num_pages = 26, .page_bytes = 10});
  EXPECT_THAT(small, StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string message(small.message());
  EXPECT_THAT(message, HasSubstr("--kv-memory has room for 26 pages of 4 rows"));
  EXPECT_THAT(message, HasSubstr("expected at least 27"));
  EXPECT_THAT(message, HasSubstr("--max-context 100"));
  EXPECT_THAT(message, HasSubstr("give --kv-memory 270 bytes or more, or lower --max-context"));
}

TEST(KvLimitsTest, HoldsWhatAWindowLeavesOfAContext) {
  EngineOptions options;
  options.max_context = 100000;
  options.max_k = 7;
  options.max_rows_per_pass = 16;
  options.draft_window = 20;
  options.draft_sink = 3;
  // Rows 0..3 with the sink; 20 seen ones, 8 that may come again, 16 of a pass and 6 guesses.
  EXPECT_EQ(MostPagesOfSession(options, 1, 6), 4 + 20 + 8 + 16 + 6);
  EXPECT_EQ(MostPagesOfSession(options, 1000, 6), 2 + 2);
  const absl::Status small =
      CheckKvFits(options, {.page_rows = 1, .num_pages = 53, .page_bytes = 10});
  EXPECT_THAT(small, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(small.message()), HasSubstr("--draft-window 20, --draft-sink 3"));
  EXPECT_THAT(CheckKvFits(options, {.page_rows = 1, .num_pages = 54, .page_bytes = 10}), IsOk());
}

}  // namespace
}  // namespace aerie
