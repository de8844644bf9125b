// The metrics page and the run against each other.
#include "client/loadtest/reconciliation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace aerie::loadtest {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(MetricsPageTest, ReadsNumbersWithAndWithoutLabels) {
  const auto page = MetricsPage::Parse(
      "# HELP a_total What it is.\n# TYPE a_total counter\na_total 3\n\n"
      "b_total{position=\"0\",name=\"with space} and brace\"} 5 1700000000\n"
      "b_total{position=\"10\"} 7\nb_total{other_position=\"1\"} 11\nc 1e3\nd +Inf\n");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->Sum("a_total"), Optional(3));
  EXPECT_THAT(page->Sum("b_total"), Optional(23));
  EXPECT_THAT(page->Sum("b_total", "position=\"0\""), Optional(5));
  EXPECT_THAT(page->Sum("b_total", "position=\"10\""), Optional(7));
  EXPECT_EQ(page->Sum("b_total", "position=\"1\""), std::nullopt) << "not other_position";
  EXPECT_THAT(page->Sum("c"), Optional(1000));
  EXPECT_EQ(page->Sum("e"), std::nullopt);
}

TEST(MetricsPageTest, RefusesWhatIsNoPage) {
  for (const char* text : {"<html>", "a_total", "a_total x", "{a=\"b\"} 1"}) {
    EXPECT_EQ(MetricsPage::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// A page of every counter at `offset` and what 2 drafts of 4 with 3 and 0 kept make on top of it.
std::string Page(double offset, bool grown) {
  const auto line = [&](const std::string& series, double by) {
    return absl::StrCat(series, " ", offset + (grown ? by : 0), "\n");
  };
  std::string page = line("aerie_spec_decode_num_drafts_total{version=\"1\"}", 2) +
                     line("aerie_spec_decode_num_draft_tokens_total", 8) +
                     line("aerie_spec_decode_num_accepted_tokens_total", 3) +
                     line("aerie_committed_tokens_total", 5) +
                     line("aerie_draft_length_tokens_count", 2) +
                     line("aerie_hidden_rows_total{transport=\"inline\"}", 34) +
                     line("aerie_hidden_bytes_total{transport=\"inline\"}", 340) +
                     line("aerie_sessions_ended_total{reason=\"closed\"}", 1) +
                     line("aerie_sessions_ended_total{reason=\"lease\"}", 9) +
                     line("aerie_drafts_unreported_total{reason=\"closed\"}", 0) +
                     line("aerie_accept_report_mismatch_total", 0);
  for (int i = 0; i < 4; ++i) {
    const std::string label = absl::StrCat("{position=\"", i, "\"}");
    page += line("aerie_spec_decode_num_draft_tokens_per_pos_total" + label, 2);
    page += line("aerie_spec_decode_num_accepted_tokens_per_pos_total" + label, i < 3 ? 1 : 0);
  }
  return page;
}

WholeStats SameRun() {
  WholeStats whole;
  whole.sure.acceptance.Add(4, 3);
  whole.sure.acceptance.Add(4, 0);
  whole.sure.committed_tokens = 5;
  whole.sure.proposals = 2;
  whole.sure.rows = 34;
  whole.sure.bytes = 340;
  whole.sure.sessions = 1;
  return whole;
}

Reconciliation Reconciled(const std::string& before, const std::string& after,
                          const WholeStats& whole) {
  const auto result = Reconcile(*MetricsPage::Parse(before), *MetricsPage::Parse(after), whole, 4);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(ReconciliationTest, FitsToTheUnitWhateverWasCountedBefore) {
  for (const double offset : {0.0, 1234.0}) {
    const Reconciliation result = Reconciled(Page(offset, false), Page(offset, true), SameRun());
    EXPECT_EQ(result.checks.size(), 18u);
    for (const CounterCheck& check : result.checks) {
      EXPECT_TRUE(check.fits()) << check.counter << " " << check.found;
      EXPECT_EQ(check.least, check.most);
    }
    EXPECT_EQ(result.differences(), 0);
  }
}

TEST(ReconciliationTest, FindsEveryDifferenceOfOneThatIsPlanted) {
  for (const char* counter :
       {"aerie_spec_decode_num_drafts_total{version=\"1\"} 2", "draft_tokens_total 8",
        "accepted_tokens_total 3", "aerie_committed_tokens_total 5", "length_tokens_count 2",
        "aerie_hidden_rows_total{transport=\"inline\"} 34", "bytes_total{transport=\"inline\"} 340",
        "ended_total{reason=\"closed\"} 1", "unreported_total{reason=\"closed\"} 0",
        "mismatch_total 0", "accepted_tokens_per_pos_total{position=\"2\"} 1"}) {
    std::string after = Page(0, true);
    const size_t at = after.find(counter);
    ASSERT_NE(at, std::string::npos) << counter;
    ++after[at + std::string(counter).size() - 1];  // the last digit
    EXPECT_EQ(Reconciled(Page(0, false), after, SameRun()).differences(), 1) << counter;
  }
}

TEST(ReconciliationTest, CallsOfUnknownOutcomeWidenWhatFitsAndNoMore) {
  WholeStats whole = SameRun();
  whole.unsure.calls = 1;
  std::string one_more = Page(0, true);
  one_more.replace(one_more.find("draft_tokens_total 8"), 20, "draft_tokens_total 12");
  EXPECT_EQ(Reconciled(Page(0, false), one_more, whole).differences(), 0);
  EXPECT_EQ(Reconciled(Page(0, false), Page(0, true), whole).differences(), 0) << "or it was not";
  std::string two_more = one_more;
  two_more.replace(two_more.find("draft_tokens_total 12"), 21, "draft_tokens_total 13");
  EXPECT_EQ(Reconciled(Page(0, false), two_more, whole).differences(), 1);
}

TEST(ReconciliationTest, ARestartedServerAndAForeignPageCannotBeCompared) {
  const auto restarted = Reconcile(*MetricsPage::Parse(Page(100, true)),
                                   *MetricsPage::Parse(Page(0, true)), SameRun(), 4);
  EXPECT_EQ(restarted.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(restarted.status().message()), HasSubstr("restarted"));
  const auto foreign =
      Reconcile(*MetricsPage::Parse("a 1\n"), *MetricsPage::Parse("a 1\n"), SameRun(), 4);
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("has no aerie_spec_decode"));
}

}  // namespace
}  // namespace aerie::loadtest
