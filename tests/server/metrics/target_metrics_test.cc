#include "server/metrics/target_metrics.h"

#include "gtest/gtest.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/metrics/exposition.h"

namespace aerie {
namespace {

TEST(TargetMetricsTest, ShowWhatCameOfEachQuotaWhenTheyAreScraped) {
  std::vector<TargetUsage> usage = {
      {.quota = "*", .sessions = 1, .rows = 2, .refused_sessions = 3, .refused_calls = 4},
      {.quota = "big", .sessions = 5, .rows = 6, .refused_sessions = 7, .refused_calls = 8}};
  const ServerMetrics server({});
  MetricPage page(server.metrics());
  page.Add("target quotas", TargetMetrics([&usage] { return usage; }));
  const Exposition before(page);
  EXPECT_EQ(before.Sum("aerie_target_sessions", {{"quota", "*"}}), 1);
  EXPECT_EQ(before.Sum("aerie_target_sessions", {{"quota", "big"}}), 5);
  EXPECT_EQ(before.Sum("aerie_target_rows_total", {{"quota", "big"}}), 6);
  EXPECT_EQ(before.Sum("aerie_target_refused_total", {{"quota", "big"}, {"limit", "sessions"}}), 7);
  EXPECT_EQ(before.Sum("aerie_target_refused_total", {{"quota", "*"}, {"limit", "rows"}}), 4);
  usage[1].sessions = 9;
  usage[1].refused_calls = 10;
  const Exposition after(page);
  EXPECT_EQ(after.Sum("aerie_target_sessions", {{"quota", "big"}}), 9);
  EXPECT_EQ(after.Sum("aerie_target_refused_total", {{"quota", "big"}, {"limit", "rows"}}), 10);
}

}  // namespace
}  // namespace aerie
