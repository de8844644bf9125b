#include "client/loadtest/svg_chart.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie::loadtest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// As a sweep makes them, whose last levels close in on the knee.
TEST(SvgChartTest, ANameThatWouldCoverTheOneBeforeIsLeftOut) {
  LineChart chart{.title = "t", .x_name = "x", .y_name = "y"};
  chart.lines.push_back({.name = "line", .points = {{100, 1}, {500, 2}, {505, 3}, {900, 4}}});
  // The last level came first.
  chart.x_ticks = {{505, "level 505"}, {100, "level 100"}, {500, "level 500"}, {900, "level 900"}};
  const std::string svg = ToSvg(chart);
  for (const char* name : {"level 100", "level 500", "level 900"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
  EXPECT_THAT(svg, Not(HasSubstr("level 505")));
  EXPECT_EQ(CountOf(svg, "class=\"axis\""), 5u) << "the axis and a tick for every level";
}

TEST(SvgChartTest, NamesThatHaveRoomAreAllThere) {
  LineChart chart{.title = "t", .x_name = "x", .y_name = "y"};
  chart.lines.push_back({.name = "line", .points = {{1, 1}, {2, 2}, {3, 3}, {4, 4}}});
  chart.x_ticks = {{1, "one"}, {2, "two"}, {3, "three"}, {4, "four"}};
  const std::string svg = ToSvg(chart);
  for (const char* name : {">one<", ">two<", ">three<", ">four<"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
}

TEST(SvgChartTest, WithoutPointsItSaysSo) {
  EXPECT_THAT(ToSvg(LineChart{.title = "t", .x_name = "x", .y_name = "y"}),
              HasSubstr("nothing was measured"));
}

}  // namespace
}  // namespace aerie::loadtest
