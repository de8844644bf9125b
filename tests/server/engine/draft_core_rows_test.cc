// What observers of rows are told, and when.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/row_observers.h"
#include "tests/server/engine/core_driver.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes everything as a line; sessions are numbered in order of their watches.
class NotingRowObserver : public RowObserver {
 public:
  std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time) override {
    notes.push_back(absl::StrCat("watch ", ++watches_, " from row ", rows.first_row, " of \"",
                                 rows.client, "\"", rows.stateless ? ", stateless" : ""));
    if (rows.client == "unseen") return nullptr;
    return std::make_unique<NotingWatch>(*this, watches_);
  }

  // Since the last time.
  std::vector<std::string> Take() { return std::exchange(notes, {}); }

  std::vector<std::string> notes;

 private:
  class NotingWatch : public RowWatch {
   public:
    NotingWatch(NotingRowObserver& owner, int number) : owner_(owner), number_(number) {}
    ~NotingWatch() override { owner_.notes.push_back(absl::StrCat("end ", number_)); }
    void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
                absl::Time) override {
      EXPECT_EQ(rows.rows(), static_cast<int64_t>(tokens.size()));
      EXPECT_EQ(rows.bytes(), MakeRows(FittingManifest(), base_length, rows.rows()).view.bytes());
      owner_.notes.push_back(
          absl::StrCat("rows of ", number_, " at ", base_length, ": ", absl::StrJoin(tokens, " ")));
    }
    void OnJudgement(const Judgement& judgement, absl::Time) override {
      owner_.notes.push_back(absl::StrCat(
          "judged ", number_, ": ", judgement.accepted, " of ", judgement.depth, " levels",
          judgement.worker_accepted.has_value()
              ? absl::StrCat(", the worker says ", *judgement.worker_accepted)
              : ""));
    }

   private:
    NotingRowObserver& owner_;
    const int number_;
  };

  int watches_ = 0;
};

class RowsTest : public ::testing::Test {
 protected:
  NotingRowObserver rows_;
  CoreDriver driver_{{.max_rows_per_pass = 4}, {}, &rows_};
};

TEST_F(RowsTest, AreToldOncePassesHaveReadAllOfACall) {
  const std::string id = driver_.OpenSession();
  EXPECT_THAT(rows_.Take(), ElementsAre("watch 1 from row 0 of \"\""));
  const auto reply = driver_.Draft(MakeDraftCall(id, 0, {1, 2, 3, 4, 5, 6}, 3));
  ASSERT_TRUE(driver_.Pass());
  EXPECT_THAT(rows_.Take(), IsEmpty()) << "two of six rows are still to come";
  ASSERT_TRUE(driver_.Pass());
  EXPECT_THAT(rows_.Take(), ElementsAre("rows of 1 at 0: 1 2 3 4 5 6"));
  EXPECT_FALSE(reply->here()) << "before the draft is made";
  driver_.RunAll();
  ASSERT_THAT(reply->value(), IsOk());
}

TEST_F(RowsTest, ComeWithTheJudgementOfTheDraftBefore) {
  const std::string id = driver_.OpenSession();
  const auto first = driver_.Run(MakeDraftCall(id, 0, {1, 2}, 3));
  ASSERT_THAT(first, IsOk());
  rows_.Take();
  const int32_t kept = first->tree.tokens[0];
  const int32_t other = first->tree.tokens[1] == 5 ? 6 : 5;
  DraftCall next = MakeDraftCall(id, 2, {kept, other}, 3);
  next.accepted = 2;
  ASSERT_THAT(driver_.Run(std::move(next)), IsOk());
  EXPECT_THAT(rows_.Take(), ElementsAre(absl::StrCat("rows of 1 at 2: ", kept, " ", other),
                                        "judged 1: 1 of 3 levels, the worker says 2"));
}

TEST_F(RowsTest, OfTheClosingCallAreJudgedBeforeTheWatchEnds) {
  const std::string id = driver_.OpenSession();
  const auto first = driver_.Run(MakeDraftCall(id, 0, {1, 2}, 3));
  ASSERT_THAT(first, IsOk());
  rows_.Take();
  ASSERT_THAT(driver_.RunClose(id, {first->tree.tokens[0] == 5 ? 6 : 5}), IsOk());
  EXPECT_THAT(rows_.Take(), ElementsAre("judged 1: 0 of 3 levels", "end 1"));
}

TEST_F(RowsTest, AreNotToldWhenThePassFailed) {
  const std::string id = driver_.OpenSession();
  rows_.Take();
  driver_.model.FailNextPass(absl::InternalError("no"));
  EXPECT_FALSE(driver_.Run(MakeDraftCall(id, 0, {1, 2}, 3)).ok());
  EXPECT_THAT(rows_.Take(), IsEmpty());
  ASSERT_THAT(driver_.Run(MakeDraftCall(id, 0, {1, 2}, 0)), IsOk());
  EXPECT_THAT(rows_.Take(), ElementsAre("rows of 1 at 0: 1 2"));
}

TEST_F(RowsTest, AreToldAgainAfterARollback) {
  const std::string id = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(id, 0, {1, 2, 3}, 0)), IsOk());
  rows_.Take();
  ASSERT_THAT(driver_.Run(MakeDraftCall(id, 1, {7}, 0)), IsOk());
  EXPECT_THAT(rows_.Take(), ElementsAre("rows of 1 at 1: 7"));
}

TEST_F(RowsTest, OfAForkBeginBehindThoseThatItShares) {
  const std::string id = driver_.OpenSession();
  ASSERT_THAT(driver_.Run(MakeDraftCall(id, 0, {1, 2, 3}, 0)), IsOk());
  rows_.Take();
  ASSERT_THAT(driver_.Open(FittingManifest(), {.fork_of = id, .fork_length = 2, .client = "a"}),
              IsOk());
  EXPECT_THAT(rows_.Take(), ElementsAre("watch 2 from row 2 of \"a\""));
}

TEST_F(RowsTest, OfAStatelessCallHaveAWatchOfTheirOwn) {
  DraftCall call = MakeDraftCall("", 0, {1, 2}, 2);
  call.sequence = FittingManifest();
  ASSERT_THAT(driver_.Run(std::move(call)), IsOk());
  EXPECT_THAT(rows_.Take(),
              ElementsAre("watch 1 from row 0 of \"\", stateless", "rows of 1 at 0: 1 2", "end 1"));
}

TEST_F(RowsTest, MayBeOfNoInterest) {
  const auto opened = driver_.Open(FittingManifest(), {.client = "unseen"});
  ASSERT_THAT(opened, IsOk());
  rows_.Take();
  ASSERT_THAT(driver_.Run(MakeDraftCall(opened->session_id, 0, {1, 2}, 2)), IsOk());
  EXPECT_THAT(rows_.Take(), IsEmpty());
}

// Wants one trial, and notes its answer.
class TryingObserver : public RowObserver {
 public:
  std::unique_ptr<RowWatch> Watch(const WatchedRows&, absl::Time) override { return nullptr; }
  std::optional<Trial> TakeTrial() override { return std::exchange(wanted, std::nullopt); }
  void OnTrial(absl::Span<const float> log_probs, absl::Time) override {
    answers.emplace_back(log_probs.begin(), log_probs.end());
  }

  void Want(int64_t base, std::vector<int32_t> tokens) {
    const OwnedRows rows = MakeRows(FittingManifest(), base, static_cast<int64_t>(tokens.size()));
    wanted = Trial{base, std::move(tokens), rows.view, rows.bytes};
  }

  std::optional<Trial> wanted;
  std::vector<std::vector<float>> answers;
};

class TrialTest : public ::testing::Test {
 protected:
  std::vector<float> Run(CoreDriver& driver) {
    EXPECT_TRUE(driver.core.PrepareTrial());
    driver.core.RunTrial(driver.now);
    EXPECT_EQ(observer_.answers.size(), 1u);
    return observer_.answers.empty() ? std::vector<float>() : observer_.answers.front();
  }

  TryingObserver observer_;
};

TEST_F(TrialTest, TellsOfEachRowHowLikelyTheNextRowsTokenIs) {
  CoreDriver driver({}, {}, &observer_);
  EXPECT_FALSE(driver.core.PrepareTrial());
  // The draft behind rows 5 and 6 of a session that starts there is what follows them most likely.
  const auto opened = driver.Open(FittingManifest(), {.start = 5});
  ASSERT_THAT(opened, IsOk());
  const auto draft = driver.Run(MakeDraftCall(opened->session_id, 5, {1, 2}, 1));
  ASSERT_THAT(draft, IsOk());
  observer_.Want(5, {1, 2, draft->tree.tokens[0]});
  const std::vector<float> scores = Run(driver);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[1], draft->tree.log_probs[0]);
  EXPECT_LE(scores[0], 0.0f);
}

TEST_F(TrialTest, LeavesPagesSlotsAndSessionsAsTheyWere) {
  CoreDriver driver({}, {}, &observer_);
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2, 3}, 0)), IsOk());
  const KvUsage before = driver.core.kv_usage();
  observer_.Want(40, std::vector<int32_t>(20, 7));
  EXPECT_EQ(Run(driver).size(), 19u);
  EXPECT_EQ(driver.core.kv_usage(), before);
  EXPECT_EQ(driver.model.open_slots(), 0);
  EXPECT_FALSE(driver.core.PrepareTrial());
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 3, {4}, 2)), IsOk());
}

TEST_F(TrialTest, TakesNoPagesThatSessionsHold) {
  CoreDriver driver({.max_context = 140},
                    {.kv_store = {.page_rows = 4, .num_pages = 40, .page_bytes = 256}}, &observer_);
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, std::vector<int32_t>(4 * 33, 1), 0)), IsOk());
  observer_.Want(0, std::vector<int32_t>(4 * 8, 7));
  EXPECT_THAT(Run(driver), IsEmpty()) << "eight pages, and seven are free";
  EXPECT_THAT(driver.Run(MakeDraftCall(id, 4 * 33, {4}, 0)), IsOk()) << "and it was not evicted";
}

TEST_F(TrialTest, IsNoLongerThanAPassMayBe) {
  CoreDriver driver({.max_rows_per_pass = 4}, {}, &observer_);
  observer_.Want(0, {1, 2, 3, 4, 5});
  EXPECT_THAT(Run(driver), IsEmpty());
}

TEST_F(TrialTest, OfAPassThatFailsHasNoAnswer) {
  CoreDriver driver({}, {}, &observer_);
  driver.model.FailNextPass(absl::InternalError("no"));
  observer_.Want(0, {1, 2, 3});
  EXPECT_THAT(Run(driver), IsEmpty());
}

TEST_F(TrialTest, OfOneOfSeveralObserversIsAnsweredToIt) {
  NotingRowObserver other;
  TryingObserver second;
  RowObservers all({&other, &observer_, &second});
  CoreDriver driver({}, {}, &all);
  observer_.Want(0, {1, 2, 3});
  EXPECT_EQ(Run(driver).size(), 2u);
  EXPECT_THAT(second.answers, IsEmpty());
}

TEST(RowObserversTest, AreAllToldAndTheUninterestedAreLeftOut) {
  NotingRowObserver a, b;
  RowObservers both({&a, &b});
  CoreDriver driver({}, {}, &both);
  const std::string id = driver.OpenSession();
  ASSERT_THAT(driver.Run(MakeDraftCall(id, 0, {1, 2}, 0)), IsOk());
  ASSERT_THAT(driver.RunClose(id), IsOk());
  EXPECT_THAT(a.Take(), ElementsAre("watch 1 from row 0 of \"\"", "rows of 1 at 0: 1 2", "end 1"));
  EXPECT_THAT(b.Take(), ElementsAre("watch 1 from row 0 of \"\"", "rows of 1 at 0: 1 2", "end 1"));
  ASSERT_THAT(driver.Open(FittingManifest(), {.client = "unseen"}), IsOk());
}

}  // namespace
}  // namespace aerie
