#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/draft_call.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

struct OptionCase {
  std::string name;
  void (*change)(EngineOptions& options);
  std::string words;
};

class EngineOptionsTest : public ::testing::TestWithParam<OptionCase> {};

TEST_P(EngineOptionsTest, NamesTheFlagAndTheValue) {
  EngineOptions options;
  EXPECT_THAT(options.Validate(), IsOk());
  GetParam().change(options);
  const absl::Status status = options.Validate();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EngineOptionsTest,
    ::testing::ValuesIn(std::vector<OptionCase>{
        {"NoK", [](EngineOptions& o) { o.max_k = 0; }, "--max-k is 0; expected 1..128"},
        {"TooLargeK", [](EngineOptions& o) { o.max_k = 129; }, "--max-k is 129"},
        {"RowsPerCall", [](EngineOptions& o) { o.max_rows_per_call = 0; },
         "--max-rows-per-call is 0; expected 1 or more"},
        {"Sessions", [](EngineOptions& o) { o.max_sessions = -4; }, "--max-sessions is -4"},
        {"Queued", [](EngineOptions& o) { o.max_queued = 0; }, "--max-queued is 0"},
        {"Context", [](EngineOptions& o) { o.max_context = 0; }, "--max-context is 0"},
        {"RowsPerPass", [](EngineOptions& o) { o.max_rows_per_pass = 0; },
         "--max-rows-per-pass is 0"},
        {"SessionsPerPass", [](EngineOptions& o) { o.max_sessions_per_pass = 0; },
         "--max-sessions-per-pass is 0"},
        {"SessionsPerClient", [](EngineOptions& o) { o.max_sessions_per_client = -1; },
         "--max-sessions-per-client is -1; expected 0 or more, 0 meaning no limit"},
        {"QueuedPerClient", [](EngineOptions& o) { o.max_queued_per_client = -1; },
         "--max-queued-per-client is -1"},
        {"Window", [](EngineOptions& o) { o.draft_window = -1; }, "--draft-window is -1"},
        {"Sink", [](EngineOptions& o) { o.draft_sink = -1; }, "--draft-sink is -1"},
        {"NoWeight",
         [](EngineOptions& o) {
           o.client_weights = {{"anna", 0}};
         },
         "--client-weight gives \"anna\" 0; expected 1..1000"},
        {"TooMuchWeight",
         [](EngineOptions& o) {
           o.client_weights = {{"anna", 1}, {"", 1001}};
         },
         "--client-weight gives \"\" 1001"},
        {"Lease", [](EngineOptions& o) { o.session_lease = absl::ZeroDuration(); },
         "--session-lease is 0"},
    }),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
