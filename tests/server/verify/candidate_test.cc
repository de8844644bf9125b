#include "server/verify/candidate.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/verify/fake_head.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(CandidateTest, AllOrderedChoicesAreListedOnce) {
  const FakeRecording recording(5, 1);
  const auto all = AllCandidates(recording.captures, 3, {0, -1, 1});
  EXPECT_THAT(all, SizeIs(5 * 4 * 3 * 3));
  EXPECT_EQ(std::set<Candidate>(all.begin(), all.end()).size(), all.size());
  EXPECT_DOUBLE_EQ(CountChoices(5, 3), 60.0);
  EXPECT_DOUBLE_EQ(CountChoices(2, 3), 0.0);
}

TEST(CandidateTest, NeighboursDifferInOneWay) {
  const FakeRecording recording(5, 1);
  const auto neighbours = NeighboursOf({{0, 1, 2}, 0}, recording.captures, {0, -1});
  EXPECT_THAT(neighbours, SizeIs(3 * 2 + 3 + 1));
  EXPECT_THAT(neighbours, Contains(Candidate{{0, 4, 2}, 0}));
  EXPECT_THAT(neighbours, Contains(Candidate{{2, 1, 0}, 0}));
  EXPECT_THAT(neighbours, Contains(Candidate{{0, 1, 2}, -1}));
  EXPECT_THAT(neighbours, Not(Contains(Candidate{{0, 1, 2}, 0})));
}

TEST(CandidateTest, OrdersOfFourAreAllAndOfFiveTheExchanges) {
  EXPECT_THAT(OrdersOf({{3, 0, 2, 1}, 0}), SizeIs(24));
  const auto five = OrdersOf({{0, 1, 2, 3, 4}, 1});
  EXPECT_THAT(five, SizeIs(11));
  EXPECT_THAT(five, Contains(Candidate{{4, 3, 2, 1, 0}, 1}));
}

TEST(CandidateTest, MovesByLayersWhatTheClaimsAllow) {
  FakeRecording recording(6, 1);
  EXPECT_THAT(MovedByLayers({{1, 3, 4}, 0}, recording.captures, {-1, 1, 2}),
              ElementsAre(Candidate{{0, 2, 3}, 0}, Candidate{{2, 4, 5}, 0}));
  recording.captures.tensors[4].claim.reset();
  EXPECT_THAT(MovedByLayers({{1, 3, 4}, 0}, recording.captures, {-1, 1}), IsEmpty());
}

TEST(CandidateTest, ATensorNeverStandsNextToWhatWasMadeOfIt) {
  FakeRecording recording(3, 1);
  recording.captures.tensors[2].origin = CaptureTensor::Origin::kTargetNorm;
  recording.captures.tensors[2].norm_of = 1;
  const auto all = AllCandidates(recording.captures, 2, {0});
  EXPECT_THAT(all, SizeIs(4));
  EXPECT_THAT(all, Not(Contains(Candidate{{1, 2}, 0})));
  EXPECT_THAT(all, Not(Contains(Candidate{{2, 1}, 0})));
}

TEST(CandidateTest, ReadsAsTensorsAndClaims) {
  FakeRecording recording(3, 1);
  recording.captures.tensors[1].claim.reset();
  const WiringView view = ViewOf({{2, 1}, 1}, recording.captures);
  EXPECT_EQ(view.Name(), "t2 | t1, states shifted by +1");
  EXPECT_THAT(view.claims, ElementsAre("boundary 2", "unlabelled"));
  EXPECT_FALSE(view.embedding);
}

}  // namespace
}  // namespace aerie
