#include "server/config/serving_gate.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServingGateTest : public ::testing::Test {
 protected:
  std::vector<bool> told_;
  ServingGate gate_{[this](bool serving) { told_.push_back(serving); }};
};

TEST_F(ServingGateTest, ServesFromReadyToDrain) {
  EXPECT_THAT(told_, IsEmpty());
  gate_.SetReady(true);
  gate_.SetReady(false);
  EXPECT_THAT(told_, ElementsAre(true, false));
}

TEST_F(ServingGateTest, ServesNotWhileRowsAreWrong) {
  gate_.SetReady(true);
  gate_.SetFit(this, false);
  gate_.SetFit(this, false);
  gate_.SetFit(this, true);
  EXPECT_THAT(told_, ElementsAre(true, false, true));
}

TEST_F(ServingGateTest, ServesNotWhileRowsOfAnyDrafterAreWrong) {
  const int other = 0;
  gate_.SetReady(true);
  gate_.SetFit(this, false);
  gate_.SetFit(&other, false);
  gate_.SetFit(this, true);
  EXPECT_THAT(told_, ElementsAre(true, false));
  gate_.SetFit(&other, true);
  EXPECT_THAT(told_, ElementsAre(true, false, true));
}

TEST_F(ServingGateTest, NeverServesAgainOnceItDrains) {
  gate_.SetReady(true);
  gate_.SetFit(this, false);
  gate_.SetReady(false);
  gate_.SetFit(this, true);
  EXPECT_THAT(told_, ElementsAre(true, false));
}

TEST_F(ServingGateTest, RowsThatAreRightDoNotMakeALoadingServerServe) {
  gate_.SetFit(this, false);
  gate_.SetFit(this, true);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace aerie
