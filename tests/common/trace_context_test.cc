#include "common/trace_context.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00f067aa0ba902b7";

TEST(TraceContextTest, ReadsWhatItWrote) {
  for (const bool sampled : {false, true}) {
    const TraceContext trace{.trace_id = kTrace, .parent_id = kParent, .sampled = sampled};
    const std::string header = ToTraceParent(trace);
    EXPECT_EQ(header, std::string("00-") + kTrace + "-" + kParent + (sampled ? "-01" : "-00"));
    EXPECT_EQ(ParseTraceParent(header), trace);
  }
}

TEST(TraceContextTest, ReadsTheLowestFlagAsSampled) {
  const std::string head = std::string("00-") + kTrace + "-" + kParent + "-";
  EXPECT_TRUE(ParseTraceParent(head + "03")->sampled);
  EXPECT_TRUE(ParseTraceParent(head + "ff")->sampled);
  EXPECT_FALSE(ParseTraceParent(head + "fe")->sampled);
}

TEST(TraceContextTest, ReadsTheKnownPartOfALaterVersion) {
  const std::string header = std::string("01-") + kTrace + "-" + kParent + "-01-more";
  ASSERT_TRUE(ParseTraceParent(header).has_value());
  EXPECT_EQ(ParseTraceParent(header)->trace_id, kTrace);
}

struct BadHeader {
  std::string name, header;
};

class UnreadableTraceParentTest : public testing::TestWithParam<BadHeader> {};

TEST_P(UnreadableTraceParentTest, IsIgnored) {
  EXPECT_EQ(ParseTraceParent(GetParam().header), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UnreadableTraceParentTest,
    testing::ValuesIn(std::vector<BadHeader>{
        {"Empty", ""},
        {"NoHeader", "hello"},
        {"CutOff", std::string("00-") + kTrace + "-" + kParent + "-0"},
        {"Capitals", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"},
        {"NoHexInTheTrace", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"},
        {"NoHexInTheParent", std::string("00-") + kTrace + "-00f067aa0ba902bx-01"},
        {"NoHexInTheFlags", std::string("00-") + kTrace + "-" + kParent + "-0x"},
        {"ZeroTrace", std::string("00-") + std::string(32, '0') + "-" + kParent + "-01"},
        {"ZeroParent", std::string("00-") + kTrace + "-" + std::string(16, '0') + "-01"},
        {"VersionFf", std::string("ff-") + kTrace + "-" + kParent + "-01"},
        {"VersionNoHex", std::string("0x-") + kTrace + "-" + kParent + "-01"},
        {"MoreThanVersion00Has", std::string("00-") + kTrace + "-" + kParent + "-01-more"},
        {"LaterVersionRunsOn", std::string("01-") + kTrace + "-" + kParent + "-01more"},
        {"OtherDashes", std::string("00_") + kTrace + "_" + kParent + "_01"},
        {"TooLong", std::string("01-") + kTrace + "-" + kParent + "-01-" + std::string(600, 'a')},
    }),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
