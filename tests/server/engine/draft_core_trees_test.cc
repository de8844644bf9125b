// Drafts of every kind through the engine: chains and trees, searched and drawn.
#include <optional>
#include <string>
#include <vector>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/reference_draft.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const SessionOptions kTree = {.max_k = 16, .tree = TreeShape{4, 3, 12}};
const SessionOptions kSampledChain = {
    .max_k = 16, .temperature = 0.8f, .top_m = 12, .seed = 5, .probs = ProposalProbs::kTopM};
const SessionOptions kSampledTree = {.max_k = 16,
                                     .tree = TreeShape{4, 3, 10},
                                     .temperature = 1.2f,
                                     .top_m = 20,
                                     .seed = 6,
                                     .probs = ProposalProbs::kTopM};

DraftTree Reference(const std::vector<int32_t>& tokens, const SessionOptions& options, int32_t k,
                    uint64_t variant = 0) {
  const OwnedRows rows =
      MakeRows(FittingManifest(), 0, static_cast<int64_t>(tokens.size()), variant);
  return ReferenceDraft({.tokens = tokens, .rows = rows.view}, options, k);
}

struct KindCase {
  std::string name;
  SessionOptions options;
  ProposalMethod method;
};

class DraftKindTest : public ::testing::TestWithParam<KindCase> {};

TEST_P(DraftKindTest, DraftsAsTheReferenceRoundAfterRound) {
  CoreDriver driver;
  const auto& [name, options, method] = GetParam();
  const std::string id = driver.OpenSession(options);
  std::vector<int32_t> committed = {3, 1, 4, 1, 5};
  int64_t base = 0;
  for (int round = 0; round < 12; ++round) {
    const std::vector<int32_t> news(committed.begin() + base, committed.end());
    const int32_t k = 1 + (round * 5) % 16;
    const auto result = driver.Run(MakeDraftCall(id, base, news, k));
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->tree, Reference(committed, options, k)) << "round " << round;
    EXPECT_EQ(result->method, method);
    EXPECT_EQ(result->no_draft_reason, NoDraftReason::kNone);
    EXPECT_EQ(driver.observer.last_round().proposed, result->tree.size());
    base = static_cast<int64_t>(committed.size());
    committed.push_back(result->tree.tokens[0]);
    committed.push_back(round);
  }
  EXPECT_EQ(driver.model.open_slots(), 0);
}

TEST_P(DraftKindTest, DraftsTheSameInABatchAndAlone) {
  EngineOptions engine;
  engine.max_rows_per_pass = 5;
  CoreDriver driver(engine);
  std::vector<ReplyPtr<DraftResult>> replies;
  const std::vector<SessionOptions> others = {SessionOptions{}, kTree, kSampledChain, kSampledTree};
  for (int i = 0; i < 8; ++i) {
    const SessionOptions& options = i % 2 == 0 ? GetParam().options : others[i / 2];
    replies.push_back(
        driver.Draft(MakeDraftCall(driver.OpenSession(options), 0, {i, i + 1, i + 2}, 4 + i, i)));
  }
  driver.RunAll();
  for (int i = 0; i < 8; i += 2) {
    ASSERT_THAT(replies[i]->value(), IsOk());
    EXPECT_EQ(replies[i]->value()->tree,
              Reference({i, i + 1, i + 2}, GetParam().options, 4 + i, i));
  }
}

TEST_P(DraftKindTest, DraftsTheSameAgainAfterAFailedPass) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(GetParam().options);
  const auto failed = driver.Draft(MakeDraftCall(id, 0, {1, 2, 3}, 8));
  driver.Pass();
  driver.Pass();
  driver.model.FailNextPass(absl::InternalError("out of order"));
  driver.RunAll();
  EXPECT_THAT(failed->value(), Refuses(StatusCode::kInternal, kReasonPassFailed));
  EXPECT_EQ(driver.core.kv_usage().pages_used, 0) << "no row was committed";
  const auto again = driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 8));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->tree, Reference({1, 2, 3}, GetParam().options, 8));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DraftKindTest,
                         ::testing::ValuesIn(std::vector<KindCase>{
                             {"GreedyChain", {.max_k = 16}, ProposalMethod::kGreedyChain},
                             {"GreedyTree", kTree, ProposalMethod::kGreedyTree},
                             {"SampledChain", kSampledChain, ProposalMethod::kSampledChain},
                             {"SampledTree", kSampledTree, ProposalMethod::kSampledTree},
                         }),
                         [](const auto& test) { return test.param.name; });

TEST(DraftTreesTest, ComputesATreeLevelByLevel) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(kTree);
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2}, 12)), IsOk());
  const auto passes = driver.model.passes();
  ASSERT_THAT(passes, SizeIs(4)) << "one for the rows, one for each level but the last";
  EXPECT_EQ(passes[0][0].outputs, Outputs::kLast);
  for (int level = 1; level < 4; ++level) {
    EXPECT_EQ(passes[level][0],
              (FakeDraftModel::PassPart{0, 2, 3, /*draft=*/true, Outputs::kEvery}));
  }
  EXPECT_EQ(driver.model.last_top_k(), 3);
}

TEST(DraftTreesTest, AsksEachPassForTheMostThatAnyOfItsRoundsReads) {
  CoreDriver driver;
  driver.Draft(MakeDraftCall(driver.OpenSession(kTree), 0, {1}, 12));
  driver.Draft(MakeDraftCall(driver.OpenSession(SessionOptions{}), 0, {1}, 2));
  driver.Draft(MakeDraftCall(driver.OpenSession(kSampledChain), 0, {1}, 2));
  driver.Pass();
  EXPECT_EQ(driver.model.last_top_k(), 12);
  driver.RunAll();
  EXPECT_EQ(driver.model.last_top_k(), 3) << "only the tree is left";
}

TEST(DraftTreesTest, GivesTheBestOfTheLevelsThatTheDeadlineLeft) {
  CoreDriver driver;
  for (const SessionOptions& options : {kTree, kSampledTree}) {
    const std::string id = driver.OpenSession(options);
    DraftCall call = MakeDraftCall(id, 0, {1, 2}, 12);
    call.deadline = driver.now + absl::Milliseconds(1);
    const auto cut = driver.Run(std::move(call));
    ASSERT_THAT(cut, IsOk());
    EXPECT_THAT(cut->tree.parents, ElementsAre(0, 0, 0)) << "the first level";
    EXPECT_EQ(cut->no_draft_reason, NoDraftReason::kDeadline);
    EXPECT_EQ(driver.observer.last_round().depth, 1);
    // What was cut leaves no trace either.
    const auto next = driver.Run(MakeDraftCall(id, 2, {7}, 12));
    ASSERT_THAT(next, IsOk());
    EXPECT_EQ(next->tree, Reference({1, 2, 7}, options, 12));
  }
}

TEST(DraftTreesTest, JudgesATreeByThePathThatTheTargetTook) {
  CoreDriver driver;
  const std::string id = driver.OpenSession(kTree);
  const auto first = driver.Run(MakeDraftCall(id, 0, {1, 2}, 12));
  ASSERT_THAT(first, IsOk());
  const DraftTree& tree = first->tree;
  // The path to the last node, which is one of the deepest.
  std::vector<int32_t> path;
  for (int32_t node = tree.size(); node > 0; node = tree.parents[node - 1]) {
    path.insert(path.begin(), tree.tokens[node - 1]);
  }
  const auto depth = static_cast<int32_t>(path.size());
  ASSERT_GT(depth, 1);
  EXPECT_EQ(driver.observer.last_round().depth, depth);
  path.push_back(100);
  const auto second = driver.Run(MakeDraftCall(id, 2, path, 12));
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->accepted, depth);
  const auto judgement = driver.observer.last_round().judgement;
  ASSERT_TRUE(judgement.has_value());
  EXPECT_EQ(judgement->proposed, 12);
  EXPECT_EQ(judgement->depth, depth);
  EXPECT_EQ(judgement->accepted, depth);
  const auto record = driver.RunClose(id, {second->tree.tokens[0], 100});
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->acceptance_histogram[1], 1);
  EXPECT_EQ(record->acceptance_histogram[depth], 1);
  EXPECT_EQ(record->draft_tokens, 24);
  int64_t judged = 0;
  for (const int64_t count : record->depth_histogram) judged += count;
  EXPECT_EQ(judged, 2);
}

TEST(DraftTreesTest, RefusesOptionsThatContradictEachOtherAndOpensNothing) {
  CoreDriver driver;
  EXPECT_THAT(driver.Open(FittingManifest(), {.tree = TreeShape{2, 2, 7}}),
              Refuses(StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  EXPECT_EQ(driver.core.sessions(), 0);
}

TEST(SampledDraftsTest, RepeatsItsDrawsForARepeatedCallAndForAnEqualSession) {
  CoreDriver driver;
  const std::string a = driver.OpenSession(kSampledTree);
  const std::string b = driver.OpenSession(kSampledTree);
  const auto first = driver.Run(MakeDraftCall(a, 0, {1, 2, 3}, 10));
  const auto second = driver.Run(MakeDraftCall(b, 0, {1, 2}, 4));
  const auto third = driver.Run(MakeDraftCall(b, 2, {3}, 10));
  const auto rolled_back = driver.Run(MakeDraftCall(a, 2, {3}, 10));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(third->tree, first->tree);
  EXPECT_EQ(rolled_back->tree, first->tree);
}

TEST(SampledDraftsTest, TellsWhatIsInForce) {
  CoreDriver driver;
  const auto opened = driver.Open(FittingManifest(), {.temperature = 1.0f});
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->top_m, 61);
  EXPECT_EQ(driver.Open(FittingManifest(), {})->top_m, 0);
}

TEST(SampledDraftsTest, FailsARoundWhoseLowerScoresAreNotFinite) {
  bool poison = false;
  FakeDraftModelOptions model_options;
  model_options.after_step = [&](std::vector<StepOutput>& outputs) {
    if (std::exchange(poison, false)) outputs[0].rows[0].top[11].log_prob = -INFINITY;
  };
  CoreDriver driver({}, model_options);
  const std::string id = driver.OpenSession(kSampledChain);
  poison = true;
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2}, 3)),
              Refuses(StatusCode::kInternal, kReasonPassFailed));
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2}, 3)), IsOk());
}

}  // namespace
}  // namespace aerie
