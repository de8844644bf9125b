#include "server/verify/search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/row_scoring.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Each;
using testing::Ge;

// Searches a recording with the fake head, counting rows.
class SearchRun {
 public:
  SearchRun(int32_t tensors, SearchOptions options, FakeTruth truth = {})
      : recording_(tensors, 12), head_(truth) {
    RowPlan plan = PlanRows(recording_.captures, 100000, 1);
    search_ = std::make_unique<CandidateSearch>(
        recording_.captures, 3, plan, options,
        [this](const Candidate& candidate, const RowPlan& rows) {
          rows_ += rows.rows();
          return RowScorer(head_, recording_.captures, 512).Score(candidate, rows);
        },
        nullptr);
  }

  CandidateSearch& search() { return *search_; }
  const Candidate& best() const { return search_->candidates()[search_->best()].candidate; }
  int64_t rows() const { return rows_; }

 private:
  const FakeRecording recording_;
  FakeHead head_;
  int64_t rows_ = 0;
  std::unique_ptr<CandidateSearch> search_;
};

TEST(CandidateSearchTest, TriesEveryChoiceWhenTheyAreFew) {
  SearchRun run(5, {.coarse_rows = 96}, {.tensors = {0, 2, 4}});
  ASSERT_THAT(run.search().Run({Candidate{{2, 0, 4}, 0}}, {}), IsOk());
  EXPECT_TRUE(run.search().exhaustive());
  EXPECT_EQ(run.search().candidates().size(), 5 * 4 * 3 * 3);
  EXPECT_EQ(run.best(), (Candidate{{0, 2, 4}, 0}));
}

TEST(CandidateSearchTest, FindsTheTruthAmongManyFromAnyStart) {
  const SearchOptions options{.coarse_rows = 96};
  for (const Candidate& start :
       {Candidate{{8, 5, 2}, 0}, Candidate{{1, 4, 7}, 0}, Candidate{{20, 21, 22}, 0},
        Candidate{{2, 5, 30}, 0}, Candidate{{5, 2, 8}, -1}}) {
    SearchRun run(33, options);
    ASSERT_THAT(run.search().Run({start}, {}), IsOk());
    EXPECT_FALSE(run.search().exhaustive());
    EXPECT_EQ(run.best(), (Candidate{{2, 5, 8}, 0})) << start.tensors[0];
    EXPECT_LE(run.search().candidates().size(), options.max_candidates);
  }
}

TEST(CandidateSearchTest, ScoresFarOnesOnFewRowsAndCloseOnesOnAll) {
  SearchRun run(5, {.coarse_rows = 96},
                {.tensors = {0, 2, 4}, .costs = {0.05, 1.0, 3.0}, .noise = 0.01});
  ASSERT_THAT(run.search().Run({Candidate{{0, 2, 4}, 0}}, {}), IsOk());
  const CandidateSearch& search = run.search();
  const std::vector<PairedTest> tests = search.CompareAll(search.best());
  int64_t thorough = 0;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (search.candidates()[i].stage == search.last_stage()) {
      ++thorough;
      continue;
    }
    EXPECT_LT(tests[i].p_adjusted, 0.001);
    EXPECT_GT(tests[i].difference, 0.1);
  }
  EXPECT_GE(thorough, 2);  // the low place hardly matters
  EXPECT_LT(run.rows(), 180 * search.plan(search.last_stage()).rows() / 3);
}

TEST(CandidateSearchTest, NeverScoresMoreThanAllowedOnAllRows) {
  SearchRun run(6, {.coarse_rows = 48, .max_thorough = 4},
                {.costs = {0.0, 0.0, 0.0}, .shift_cost = 0.0});
  ASSERT_THAT(run.search().Run({Candidate{{0, 1, 2}, 0}}, {}), IsOk());
  int64_t thorough = 0;
  for (const ScoredCandidate& scored : run.search().candidates()) {
    thorough += scored.stage == run.search().last_stage() ? 1 : 0;
  }
  EXPECT_LE(thorough, 4);
}

TEST(CandidateSearchTest, KeepsToTheShiftsItIsGiven) {
  SearchRun run(5, {.coarse_rows = 96, .shifts = {0, -1}}, {.tensors = {0, 2, 4}});
  ASSERT_THAT(run.search().Run({}, {}), IsOk());
  EXPECT_EQ(run.search().candidates().size(), 5 * 4 * 3 * 2);
  EXPECT_EQ(run.best(), (Candidate{{0, 2, 4}, 0}));
}

TEST(CandidateSearchTest, ComparesOverTheRowsThatBothWereScoredOn) {
  SearchRun run(5, {.coarse_rows = 96}, {.tensors = {0, 2, 4}});
  CandidateSearch& search = run.search();
  ASSERT_THAT(search.Run({Candidate{{0, 2, 4}, 0}}, {}), IsOk());
  const auto coarse = std::find_if(search.candidates().begin(), search.candidates().end(),
                                   [](const ScoredCandidate& scored) { return scored.stage == 0; });
  ASSERT_NE(coarse, search.candidates().end());
  const PairedTest test =
      search.Compare(search.best(), static_cast<int32_t>(coarse - search.candidates().begin()));
  EXPECT_LE(test.rows, search.plan(0).rows());
  EXPECT_GE(test.rows, search.plan(0).rows() * 9 / 10);
  EXPECT_EQ(test.sequences, 12);
}

TEST(CandidateSearchTest, PassesOnWhatTheScorerFailsWith) {
  const FakeRecording recording(4, 6);
  CandidateSearch search(
      recording.captures, 2, PlanRows(recording.captures, 100, 1), {},
      [](const Candidate&, const RowPlan&) { return absl::InternalError("out of order"); },
      nullptr);
  EXPECT_THAT(search.Run({Candidate{{0, 1}, 0}}, {}), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace aerie
