#include "server/transport/reply_order.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReplyOrderTest, HoldsAReplyBackUntilItsEldersOfTheSameSessionAreThere) {
  ReplyOrder<std::string> order;
  const auto first = order.Expect("a");
  const auto second = order.Expect("a");
  const auto third = order.Expect("a");
  EXPECT_THAT(order.Complete(third, "3"), IsEmpty());
  EXPECT_THAT(order.Complete(first, "1"), ElementsAre("1"));
  EXPECT_THAT(order.Complete(second, "2"), ElementsAre("2", "3"));
}

TEST(ReplyOrderTest, LetsSessionsOvertakeEachOther) {
  ReplyOrder<std::string> order;
  const auto a = order.Expect("a");
  const auto b = order.Expect("b");
  EXPECT_THAT(order.Complete(b, "b"), ElementsAre("b"));
  EXPECT_THAT(order.Complete(a, "a"), ElementsAre("a"));
}

TEST(ReplyOrderTest, LetsRepliesWithoutASessionWaitForNobody) {
  ReplyOrder<std::string> order;
  const auto first = order.Expect("");
  const auto second = order.Expect("");
  EXPECT_THAT(order.Complete(second, "2"), ElementsAre("2"));
  EXPECT_THAT(order.Complete(first, "1"), ElementsAre("1"));
}

TEST(ReplyOrderTest, StartsAnewOnceASessionHasNothingLeft) {
  ReplyOrder<std::string> order;
  EXPECT_THAT(order.Complete(order.Expect("a"), "1"), ElementsAre("1"));
  EXPECT_THAT(order.Complete(order.Expect("a"), "2"), ElementsAre("2"));
}

}  // namespace
}  // namespace aerie
