// What votes come to, with votes made by hand: each rule alone.
#include "server/guard/vote_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/guard/source_watch.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kDeclared[] = {2, 6, 10};

// Three places, each with the alternatives boundary 0 .. 12 but itself; a landmark lies at 1 along
// its own direction and at 0 along all others.
GuardProfile Profile() {
  GuardProfile profile{.hidden_size = 4, .channels = {0, 1, 2, 3}};
  for (const int32_t declared : kDeclared) {
    GuardPlace place{.capture = Capture::Boundary(declared),
                     .center = {0, 0, 0, 0},
                     .scale = {1, 1, 1, 1},
                     .size = {1, 1, 1, 1}};
    for (int32_t b = 0; b <= 12; ++b) {
      if (b == declared) continue;
      place.alternatives.push_back(
          {.capture = Capture::Boundary(b), .weights = {1, 0, 0, 0}, .told_apart = true});
    }
    const size_t count = place.alternatives.size();
    place.landmarks.assign((count + 1) * count, 0.0f);
    for (size_t a = 0; a < count; ++a) place.landmarks[(a + 1) * count + a] = 1.0f;
    place.landmark_sizes.assign(count + 1, 1.0f);
    profile.places.push_back(std::move(place));
  }
  return profile;
}

size_t IndexOf(size_t place, int32_t boundary) {
  return static_cast<size_t>(boundary - (boundary > kDeclared[place] ? 1 : 0));
}

struct Lean {
  size_t place = 0;
  int32_t towards = 0;  // a boundary
  float position = 0.0f;
};

RowVote VoteOf(int64_t session, const std::vector<Lean>& leans) {
  RowVote vote{.session = session, .rows = 16};
  for (size_t i = 0; i < 3; ++i) {
    vote.places.push_back({.positions = std::vector<float>(12, 0.0f), .size = 1.0f});
  }
  for (const Lean& lean : leans) {
    vote.places[lean.place].positions[IndexOf(lean.place, lean.towards)] = lean.position;
  }
  return vote;
}

// `count` votes of as many sessions.
std::deque<RowVote> Votes(int64_t count, const std::vector<Lean>& leans) {
  std::deque<RowVote> votes;
  for (int64_t i = 0; i < count; ++i) votes.push_back(VoteOf(i, leans));
  return votes;
}

Findings Weigh(const std::deque<RowVote>& votes) { return WeighVotes(Profile(), {}, votes); }

TEST(VoteFindingsTest, FindNothingInRowsAsDeclared) {
  const Findings findings = Weigh(Votes(12, {}));
  EXPECT_EQ(findings.level, FindingLevel::kNone);
  EXPECT_THAT(findings.verdict, IsEmpty());
  ASSERT_EQ(findings.places.size(), 3);
  for (const PlaceReport& place : findings.places) EXPECT_EQ(place.looks_like, place.declared);
}

TEST(VoteFindingsTest, CallFarCapturesWrongAfterThreeVotes) {
  const std::vector<Lean> leans = {{2, 6, 0.9f}};
  EXPECT_EQ(Weigh(Votes(1, leans)).level, FindingLevel::kNone);
  EXPECT_EQ(Weigh(Votes(2, leans)).level, FindingLevel::kSuspect);
  const Findings findings = Weigh(Votes(3, leans));
  EXPECT_EQ(findings.level, FindingLevel::kWrong);
  EXPECT_EQ(findings.places[2].looks_like, Capture::Boundary(6));
  EXPECT_NEAR(findings.places[2].position, 0.9, 1e-6);
}

TEST(VoteFindingsTest, CallANearCaptureWrongOnlyAfterManySessions) {
  const std::vector<Lean> leans = {{2, 9, 0.9f}};
  EXPECT_EQ(Weigh(Votes(5, leans)).level, FindingLevel::kSuspect);
  EXPECT_EQ(Weigh(Votes(6, leans)).level, FindingLevel::kWrong);
  std::deque<RowVote> of_two_sessions = Votes(6, leans);
  for (RowVote& vote : of_two_sessions) vote.session %= 2;
  EXPECT_EQ(Weigh(of_two_sessions).level, FindingLevel::kSuspect);
}

TEST(VoteFindingsTest, OnlySuspectANearCaptureThatIsHalfReached) {
  EXPECT_EQ(Weigh(Votes(12, {{2, 9, 0.7f}})).level, FindingLevel::kSuspect);
  EXPECT_EQ(Weigh(Votes(12, {{2, 9, 0.6f}})).level, FindingLevel::kNone);
}

TEST(VoteFindingsTest, DoNotJumpOverTheLayerBetween) {
  // Texts in other languages lean to the layer after next, and not to the next.
  EXPECT_EQ(Weigh(Votes(12, {{2, 8, 0.9f}})).level, FindingLevel::kNone);
  EXPECT_EQ(Weigh(Votes(12, {{2, 8, 0.9f}, {2, 9, 0.85f}})).level, FindingLevel::kWrong);
}

TEST(VoteFindingsTest, AddUpWhatAllCapturesLeanTo) {
  // None of them would be enough alone.
  const std::vector<Lean> leans = {{0, 3, 0.6f}, {1, 7, 0.6f}, {2, 11, 0.6f}};
  const Findings findings = Weigh(Votes(4, leans));
  EXPECT_EQ(findings.level, FindingLevel::kWrong);
  EXPECT_NEAR(*findings.one_layer_later, 0.6, 1e-6);
  EXPECT_NEAR(*findings.one_layer_earlier, 0.0, 1e-6);
  EXPECT_THAT(findings.verdict, HasSubstr("[3, 7, 11]"));
  EXPECT_THAT(findings.verdict, HasSubstr("one layer later"));
  EXPECT_EQ(Weigh(Votes(3, leans)).level, FindingLevel::kSuspect);
}

TEST(VoteFindingsTest, DoNotTakeOneCaptureFarOutForAShiftOfAll) {
  const Findings findings = Weigh(Votes(12, {{0, 3, 3.0f}, {1, 7, 0.24f}, {2, 11, 0.5f}}));
  EXPECT_NEAR(*findings.one_layer_later, (1.0 + 0.24 + 0.5) / 3, 1e-6);
  EXPECT_EQ(findings.places[1].looks_like, Capture::Boundary(6));
  EXPECT_THAT(findings.verdict, ::testing::Not(HasSubstr("one layer later")));
}

TEST(VoteFindingsTest, HeedTheMajorityOfVotesOnly) {
  std::deque<RowVote> votes = Votes(5, {{2, 6, 1.0f}});
  for (int64_t i = 5; i < 12; ++i) votes.push_back(VoteOf(i, {}));
  EXPECT_EQ(Weigh(votes).level, FindingLevel::kNone);
  votes = Votes(7, {{2, 6, 1.0f}});
  for (int64_t i = 7; i < 12; ++i) votes.push_back(VoteOf(i, {}));
  EXPECT_EQ(Weigh(votes).level, FindingLevel::kWrong);
}

TEST(VoteFindingsTest, LeaveOddVotesOut) {
  std::deque<RowVote> votes = Votes(12, {{2, 6, 1.0f}});
  for (RowVote& vote : votes) {
    vote.places[1].misfit = 0.5f;
    vote.places[1].size = 3.0f;
  }
  EXPECT_EQ(Weigh(votes).level, FindingLevel::kNone);
  EXPECT_EQ(Weigh(votes).votes, 0);
  // Rows that are too small are no odd text's.
  for (RowVote& vote : votes) vote.places[1].size = 0.1f;
  EXPECT_EQ(Weigh(votes).level, FindingLevel::kWrong);
}

TEST(VoteFindingsTest, CallRowsOfAnotherSizeWrong) {
  for (const float size : {0.3f, 3.0f}) {
    std::deque<RowVote> votes = Votes(3, {});
    for (RowVote& vote : votes) vote.places[0].size = size;
    EXPECT_EQ(Weigh(votes).level, FindingLevel::kWrong) << size;
  }
}

RowVote VoteWithTokens(double preceding, double own, double earlier, int64_t pairs) {
  RowVote vote = VoteOf(1, {});
  const auto n = static_cast<double>(pairs);
  vote.alignment = {.distance = {own * n, preceding * n, earlier * n},
                    .pairs = {pairs, pairs, pairs},
                    .any_distance = n,
                    .any_pairs = pairs};
  return vote;
}

TEST(VoteFindingsTest, SeeTokensOfOtherStates) {
  const auto level = [](double preceding, double own, double earlier, int64_t pairs) {
    return Weigh(std::deque<RowVote>(3, VoteWithTokens(preceding, own, earlier, pairs))).level;
  };
  EXPECT_EQ(level(0.95, 0.4, 0.95, 4), FindingLevel::kWrong);
  EXPECT_EQ(level(0.95, 0.95, 0.4, 4), FindingLevel::kWrong);
  EXPECT_EQ(level(0.4, 0.95, 0.95, 4), FindingLevel::kNone);
  EXPECT_EQ(level(0.95, 0.4, 0.95, 2), FindingLevel::kNone);  // six pairs in all
  EXPECT_EQ(level(0.95, 0.8, 0.9, 4), FindingLevel::kNone);   // hardly nearer
  EXPECT_EQ(level(0.5, 0.3, 0.9, 4), FindingLevel::kNone);    // the right one is near too
}

absl::Time At(int64_t second) { return absl::UnixEpoch() + absl::Seconds(second); }

TEST(SourceWatchTest, LeavesWrongOnlyAfterSixCalmVotesInARow) {
  const GuardProfile profile = Profile();
  SourceWatch watch({.client = "a", .profile = &profile, .captures = 3});
  int64_t now = 0;
  for (int64_t i = 0; i < 12; ++i) watch.AddVote(VoteOf(i, {{2, 6, 1.0f}}), At(++now));
  ASSERT_EQ(watch.state(), WiringState::kWrong);
  // Half of the twelve must be replaced before the median turns; then come the six.
  for (int64_t i = 0; i < 10; ++i) {
    watch.AddVote(VoteOf(100 + i, {}), At(++now));
    EXPECT_EQ(watch.state(), WiringState::kWrong) << i;
  }
  watch.AddVote(VoteOf(200, {}), At(++now));
  EXPECT_EQ(watch.state(), WiringState::kOk);
  EXPECT_EQ(watch.Report().since, At(now));
}

TEST(SourceWatchTest, TakesTwoAlarmsInARowForWrong) {
  const GuardProfile profile = Profile();
  SourceWatch watch({.client = "a", .profile = &profile, .captures = 3});
  for (int64_t i = 0; i < 3; ++i) watch.AddVote(VoteOf(i, {{2, 6, 1.0f}}), At(i));
  EXPECT_EQ(watch.state(), WiringState::kSuspect);
  watch.AddVote(VoteOf(3, {{2, 6, 1.0f}}), At(3));
  EXPECT_EQ(watch.state(), WiringState::kWrong);
}

TEST(SourceWatchTest, SuspectsASourceOfOddRowsOnlyAndNoMore) {
  const GuardProfile profile = Profile();
  SourceWatch watch({.client = "a", .profile = &profile, .captures = 3});
  RowVote odd = VoteOf(1, {});
  odd.places[0].misfit = 0.6f;
  odd.places[0].size = 3.5f;
  for (int64_t i = 0; i < 30; ++i) watch.AddVote(odd, At(i));
  EXPECT_EQ(watch.state(), WiringState::kSuspect);
  EXPECT_THAT(watch.Report().verdict, HasSubstr("like no recorded capture"));
}

TEST(SourceWatchTest, KeepsWhatOtherSessionsSaidThroughOneLongSession) {
  const GuardProfile profile = Profile();
  SourceWatch watch({.client = "a", .profile = &profile, .captures = 3});
  for (int64_t i = 0; i < 6; ++i) watch.AddVote(VoteOf(i, {}), At(i));
  // One text that leans far, and goes on and on.
  for (int64_t i = 0; i < 40; ++i) watch.AddVote(VoteOf(99, {{2, 6, 1.0f}}), At(10 + i));
  EXPECT_EQ(watch.Report().sessions, 7);
  EXPECT_NE(watch.state(), WiringState::kWrong);
}

}  // namespace
}  // namespace aerie
