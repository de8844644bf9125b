#include "server/engine/depth_acceptance.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DepthAcceptanceTest, ThinksOfEveryDepthTheSameBeforeItSawAny) {
  const DepthAcceptance acceptance;
  EXPECT_THAT(acceptance.Rates(0), IsEmpty());
  const std::vector<double> rates = acceptance.Rates(5);
  EXPECT_EQ(rates.size(), 5u);
  EXPECT_THAT(rates, Each(rates[0]));
}

// Of four proposals two are kept to depth 1 and one to depth 3: rates of 1/2, 1/2 and 1.
TEST(DepthAcceptanceTest, RatesAreConditional) {
  DepthAcceptance acceptance;
  for (int time = 0; time < 200; ++time) {
    for (const int32_t accepted : {0, 1, 0, 3}) acceptance.Observe(3, accepted);
  }
  EXPECT_THAT(acceptance.Rates(3),
              ElementsAre(DoubleNear(0.5, 0.03), DoubleNear(0.5, 0.05), DoubleNear(1, 0.05)));
}

TEST(DepthAcceptanceTest, AProposalSaysNothingOfDepthsThatItDoesNotHave) {
  DepthAcceptance acceptance;
  for (int time = 0; time < 200; ++time) acceptance.Observe(1, time % 2);
  for (int time = 0; time < 20; ++time) acceptance.Observe(2, 2);
  const std::vector<double> before = acceptance.Rates(2);
  acceptance.Observe(1, 1);  // kept, but there was no second token to judge
  EXPECT_NEAR(acceptance.Rates(2)[1], before[1], 0.001);
  EXPECT_GT(acceptance.Rates(2)[0], before[0]);
}

TEST(DepthAcceptanceTest, FollowsATextThatChanges) {
  DepthAcceptance acceptance;
  for (int time = 0; time < 500; ++time) acceptance.Observe(2, 2);
  for (int time = 0; time < 150; ++time) acceptance.Observe(2, 0);
  EXPECT_LT(acceptance.Rates(2)[0], 0.1);
}

TEST(DepthAcceptanceTest, ADepthThatIsNotReachedComesToFareAsTheOneAbove) {
  DepthAcceptance acceptance;
  for (int time = 0; time < 200; ++time) acceptance.Observe(2, 1);
  EXPECT_LT(acceptance.Rates(2)[1], 0.1);
  for (int time = 0; time < 10000; ++time) acceptance.Observe(1, 1);
  EXPECT_GT(acceptance.Rates(2)[1], 0.9);
}

}  // namespace
}  // namespace aerie
