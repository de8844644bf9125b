// A load test against a small server, the same for both transports.
#pragma once

#include <gtest/gtest.h>

#include "client/loadtest/load_test.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"

namespace aerie::loadtest {

class LoadTestTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  LoadOptions Options() {
    LoadOptions options;
    options.address = server_.address();
    options.transport = GetParam();
    options.sessions = LoadProfile::Constant(4);
    options.requests = 10;
    options.rounds = 20;
    options.k = 4;
    options.prompt_rows = 30;
    options.deadline = absl::Seconds(60);
    return options;
  }
  Report Run(const LoadOptions& options) {
    auto test = LoadTest::Prepare(options);
    EXPECT_TRUE(test.ok()) << test.status();
    return (*test)->Run(nullptr);
  }

  FakeDraftService service_;
  TestServer server_{&service_};
};

}  // namespace aerie::loadtest
