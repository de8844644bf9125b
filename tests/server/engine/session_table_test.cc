#include "server/engine/session_table.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kLease = absl::Seconds(10);

TEST(SessionTableTest, GivesIdsOf128BitsThatDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = NewSessionId();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(SessionTableTest, FindsWhatItHoldsAndNothingElse) {
  SessionTable table(kLease);
  SessionEntry* a = table.Add({.id = "a"}, nullptr, kStart);
  SessionEntry* b = table.Add({.id = "b"}, nullptr, kStart);
  EXPECT_EQ(table.Find("a"), a);
  table.Erase(a);
  EXPECT_EQ(table.Find("a"), nullptr);
  EXPECT_EQ(table.Find("b"), b);
  EXPECT_EQ(table.size(), 1u);
}

TEST(SessionTableTest, ExpiresSessionsInTheOrderInWhichTheyWereLastUsed) {
  SessionTable table(kLease);
  SessionEntry* a = table.Add({.id = "a"}, nullptr, kStart);
  SessionEntry* b = table.Add({.id = "b"}, nullptr, kStart + absl::Seconds(1));
  table.MarkBusy(a);
  table.MarkIdle(a, kStart + absl::Seconds(5));
  EXPECT_EQ(table.NextExpiry(), kStart + absl::Seconds(11));
  EXPECT_EQ(table.FindExpired(kStart + absl::Seconds(11) - absl::Nanoseconds(1)), nullptr);
  EXPECT_EQ(table.FindExpired(kStart + absl::Seconds(11)), b);
  table.Erase(b);
  EXPECT_EQ(table.FindExpired(kStart + absl::Seconds(11)), nullptr);
  EXPECT_EQ(table.FindExpired(kStart + absl::Seconds(15)), a);
}

TEST(SessionTableTest, NeverExpiresABusySession) {
  SessionTable table(kLease);
  SessionEntry* a = table.Add({.id = "a"}, nullptr, kStart);
  table.MarkBusy(a);
  EXPECT_EQ(table.NextExpiry(), absl::InfiniteFuture());
  EXPECT_EQ(table.FindExpired(absl::InfiniteFuture()), nullptr);
}

TEST(SessionTableTest, RemembersTheLastExpiredIdsWithinABound) {
  SessionTable table(kLease);
  for (int i = 0; i < 1025; ++i) table.RememberExpired(std::to_string(i));
  EXPECT_FALSE(table.HasExpired("0"));
  EXPECT_TRUE(table.HasExpired("1"));
  EXPECT_TRUE(table.HasExpired("1024"));
}

}  // namespace
}  // namespace aerie
