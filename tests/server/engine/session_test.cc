#include "server/engine/session.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {

bool operator==(const Judgement& a, const Judgement& b) {
  return a.proposed == b.proposed && a.depth == b.depth && a.accepted == b.accepted &&
         a.worker_accepted == b.worker_accepted;
}

namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr absl::Time kStart = absl::UnixEpoch();

DraftTree Chain(const std::vector<int32_t>& tokens) {
  DraftTree tree;
  for (const int32_t token : tokens) tree.AppendToChain(token, -1.0f);
  return tree;
}

// Holds rows 0..3 with tokens 10, 11, 12, 13 and proposed 20, 21, 22 for rows 4, 5, 6.
Session DraftedSession() {
  Session session({.id = "s"});
  session.Commit(0, {10, 11, 12, 13}, std::nullopt, kStart);
  EXPECT_EQ(session.Propose(Chain({20, 21, 22})), std::nullopt);
  return session;
}

struct JudgementCase {
  std::string name;
  int64_t base;
  std::vector<int32_t> tokens;
  std::optional<int32_t> accepted;  // nothing: not judged
  bool lost;
  int64_t committed;
};

class JudgementTest : public ::testing::TestWithParam<JudgementCase> {};

TEST_P(JudgementTest, FindsWhatTheTargetKept) {
  const JudgementCase& c = GetParam();
  Session session = DraftedSession();
  const Settlement settlement = session.Commit(c.base, c.tokens, std::nullopt, kStart);
  if (c.accepted.has_value()) {
    EXPECT_THAT(settlement.judgement, Optional(Judgement{3, 3, *c.accepted, std::nullopt}));
  } else {
    EXPECT_EQ(settlement.judgement, std::nullopt);
  }
  EXPECT_EQ(settlement.unreported.has_value(), c.lost);
  if (c.lost) {
    EXPECT_EQ(settlement.unreported, UnreportedReason::kRollback);
  }
  EXPECT_EQ(session.has_proposal(), !c.accepted.has_value() && !c.lost);
  EXPECT_EQ(settlement.committed_tokens, c.committed);
  EXPECT_EQ(session.length(), c.base + static_cast<int64_t>(c.tokens.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, JudgementTest,
    ::testing::ValuesIn(std::vector<JudgementCase>{
        {"AllKeptAndABonus", 4, {20, 21, 22, 30}, 3, false, 4},
        {"FirstRejected", 4, {30}, 0, false, 1},
        {"OnlyTheFirstKept", 4, {20, 30}, 1, false, 2},
        {"AfterTheFirstRejectionNothingCounts", 4, {20, 30, 22}, 1, false, 3},
        {"FewerTokensThanProposed", 4, {20, 21}, 2, false, 2},
        {"ResentRowsAreSkippedOver", 2, {12, 13, 20, 30}, 1, false, 2},
        {"ResentFromTheStart", 0, {10, 11, 12, 13, 20, 21, 22}, 3, false, 3},
        {"OtherTokensBelowTheProposalLoseIt", 2, {12, 99, 20, 30}, std::nullopt, true, 2},
        {"RowsThatEndBelowTheProposalLeaveItOpen", 1, {11}, std::nullopt, false, 0},
        {"RowsThatEndAtTheProposalLeaveItOpen", 3, {13}, std::nullopt, false, 0},
        {"OtherTokensThatEndBelowLoseIt", 1, {99}, std::nullopt, true, 0},
        {"NoRowsLeaveItOpen", 4, {}, std::nullopt, false, 0},
        {"ABareRollbackLeavesItOpen", 1, {}, std::nullopt, false, 0},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SessionTest, JudgesAProposalOnceRowsThatWereRolledBackCameAgainInParts) {
  Session session = DraftedSession();
  session.Commit(1, {}, std::nullopt, kStart);
  session.Commit(1, {11, 12}, std::nullopt, kStart);
  session.Commit(3, {13}, std::nullopt, kStart);
  const Settlement settlement = session.Commit(4, {20, 21, 40}, 2, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{3, 3, 2, 2}));
  EXPECT_EQ(settlement.committed_tokens, 3);
}

TEST(SessionTest, LosesAProposalWhenTheRowsComeBackWithOtherTokens) {
  Session session = DraftedSession();
  session.Commit(1, {}, std::nullopt, kStart);
  EXPECT_EQ(session.Commit(1, {11, 99}, std::nullopt, kStart).unreported,
            UnreportedReason::kRollback);
  const Settlement settlement = session.Commit(3, {13, 20}, std::nullopt, kStart);
  EXPECT_EQ(settlement.judgement, std::nullopt);
  EXPECT_EQ(settlement.unreported, std::nullopt) << "a proposal is lost once";
}

TEST(SessionTest, LosesAProposalThatANewOneReplaces) {
  Session session = DraftedSession();
  session.Commit(1, {11}, std::nullopt, kStart);
  EXPECT_EQ(session.Propose(Chain({50})), UnreportedReason::kRollback);
  const Settlement settlement = session.Commit(2, {50, 60}, std::nullopt, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{1, 1, 1, std::nullopt}));
}

TEST(SessionTest, JudgesAProposalAtMostOnce) {
  Session session = DraftedSession();
  EXPECT_TRUE(session.Commit(4, {20, 30}, std::nullopt, kStart).judgement.has_value());
  const Settlement again = session.Commit(4, {20, 30}, std::nullopt, kStart);
  EXPECT_EQ(again.judgement, std::nullopt);
  EXPECT_EQ(again.unreported, std::nullopt);
  EXPECT_EQ(again.committed_tokens, 0) << "the same tokens are not committed twice";
}

TEST(SessionTest, KeepsTheProposalForTheRetryOfACallThatFailed) {
  Session session = DraftedSession();
  session.RollBackTo(2);
  const Settlement settlement = session.Commit(2, {12, 13, 20, 21, 70}, std::nullopt, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{3, 3, 2, std::nullopt}));
}

TEST(SessionTest, CountsNoPromptAsOutput) {
  Session session({.id = "s"});
  EXPECT_EQ(session.Commit(0, {1, 2, 3}, std::nullopt, kStart).committed_tokens, 0);
  EXPECT_EQ(session.Commit(3, {4, 5}, std::nullopt, kStart).committed_tokens, 0);
  session.Propose(Chain({6}));
  EXPECT_EQ(session.Commit(5, {6, 7}, std::nullopt, kStart).committed_tokens, 2);
}

TEST(SessionTest, AddsUpItsRecordAndEndsIt) {
  Session session = DraftedSession();
  session.Commit(4, {20, 30}, std::nullopt, kStart + absl::Seconds(1));
  session.Propose(Chain({31, 32, 33, 34}));
  session.Commit(6, {31, 32, 33, 34, 35}, std::nullopt, kStart + absl::Seconds(2));
  session.Propose(Chain({36}));
  const SessionRecord record =
      session.End(SessionEnd::kClosed, {36, 37}, kStart + absl::Seconds(5));
  EXPECT_THAT(record.acceptance.acceptance_histogram, ElementsAre(0, 2, 0, 0, 1));
  EXPECT_EQ(record.acceptance.accepted_draft_tokens, 6);
  EXPECT_EQ(record.acceptance.draft_tokens, 8);
  EXPECT_EQ(record.acceptance.spec_steps, 3);
  EXPECT_EQ(record.acceptance.spec_tokens, 4);
  EXPECT_EQ(record.acceptance.completion_tokens, 9);
  EXPECT_EQ(record.acceptance.unreported_drafts, 0);
  EXPECT_EQ(record.final_tokens, 2);
  EXPECT_THAT(record.judgement, Optional(Judgement{1, 1, 1, std::nullopt}));
  EXPECT_EQ(record.unreported, std::nullopt);
  EXPECT_EQ(record.active, absl::Seconds(5));
}

TEST(SessionTest, LeavesThePromptsChunksOutOfItsActiveTime) {
  Session session({.id = "s"});
  session.Commit(0, {1, 2, 3}, std::nullopt, kStart);
  session.Commit(3, {4, 5}, std::nullopt, kStart + absl::Seconds(2));
  session.Propose(Chain({6}));
  session.Commit(5, {6, 7}, std::nullopt, kStart + absl::Seconds(5));
  EXPECT_EQ(session.End(SessionEnd::kClosed, {}, kStart + absl::Seconds(9)).active,
            absl::Seconds(3));
}

TEST(SessionTest, EndsWithAnUnreportedProposalWhenNoTokensCame) {
  const std::vector<std::pair<SessionEnd, UnreportedReason>> cases = {
      {SessionEnd::kClosed, UnreportedReason::kClosed},
      {SessionEnd::kLease, UnreportedReason::kLease},
      {SessionEnd::kStreamClosed, UnreportedReason::kStreamClosed},
      {SessionEnd::kShutdown, UnreportedReason::kShutdown}};
  for (const auto& [end, reason] : cases) {
    Session session = DraftedSession();
    const SessionRecord record = session.End(end, {}, kStart);
    EXPECT_EQ(record.end, end);
    EXPECT_EQ(record.unreported, reason);
    EXPECT_EQ(record.acceptance.unreported_drafts, 1);
    EXPECT_EQ(record.acceptance.spec_steps, 0);
  }
}

TEST(SessionTest, JudgesATreeByItsPathAndKeepsItsDepth) {
  Session session({.id = "s"});
  session.Commit(0, {10, 11}, std::nullopt, kStart);
  DraftTree tree;  // 20 and 21 under the root, 22 and 23 under 21
  tree.tokens = {20, 21, 22, 23};
  tree.parents = {0, 0, 2, 2};
  tree.log_probs = {-1, -1, -1, -1};
  session.Propose(tree);
  const Settlement settlement = session.Commit(2, {21, 23, 30}, std::nullopt, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{4, 2, 2, std::nullopt}));
  session.Propose(Chain({40, 41, 42}));
  const SessionRecord record = session.End(SessionEnd::kClosed, {40, 50}, kStart);
  EXPECT_THAT(record.acceptance.acceptance_histogram, ElementsAre(0, 1, 1));
  EXPECT_THAT(record.acceptance.depth_histogram, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(record.acceptance.draft_tokens, 7);
}

TEST(SessionTest, CountsRowsFromItsStart) {
  Session session({.id = "s", .visible = {.start = 100}});
  EXPECT_EQ(session.length(), 100);
  session.Commit(100, {1, 2, 3}, std::nullopt, kStart);
  EXPECT_EQ(session.length(), 103);
  session.Propose(Chain({4, 5}));
  const Settlement settlement = session.Commit(102, {3, 4, 9}, std::nullopt, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{2, 2, 1, std::nullopt}));
  EXPECT_EQ(settlement.committed_tokens, 2);
  EXPECT_THAT(session.tokens(), ElementsAre(1, 2, 3, 4, 9));
}

TEST(SessionTest, KeepsItsProposalWhenItIsEvicted) {
  Session session = DraftedSession();
  session.Evict();
  EXPECT_TRUE(session.evicted());
  EXPECT_EQ(session.length(), 0);
  const Settlement settlement =
      session.Commit(0, {10, 11, 12, 13, 20, 21, 70}, std::nullopt, kStart);
  EXPECT_FALSE(session.evicted());
  EXPECT_THAT(settlement.judgement, Optional(Judgement{3, 3, 2, std::nullopt}));
  EXPECT_EQ(settlement.committed_tokens, 3);
}

TEST(SessionTest, JudgesTheProposalByTokensWhoseRowsWereNotTaken) {
  Session session = DraftedSession();
  const Settlement settlement = session.NoteUntaken(4, {20, 21, 30}, std::nullopt, kStart);
  EXPECT_THAT(settlement.judgement, Optional(Judgement{3, 3, 2, std::nullopt}));
  EXPECT_EQ(session.length(), 4);
  EXPECT_TRUE(session.past_limit());
  EXPECT_EQ(session.NoteUntaken(7, {31}, std::nullopt, kStart).committed_tokens, 1);
  const SessionRecord record = session.End(SessionEnd::kClosed, {32, 33}, kStart);
  EXPECT_EQ(record.acceptance.completion_tokens, 6);
  EXPECT_EQ(record.judgement, std::nullopt);
}

}  // namespace
}  // namespace aerie
