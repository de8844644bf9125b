// A client of either transport in front of a FakeDraftService.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "client/draft_client.h"
#include "tests/client/fake_draft_service.h"
#include "tests/client/test_server.h"
#include "tests/client/worker.h"

namespace aerie {

class SessionFixture : public ::testing::TestWithParam<TransportKind> {
 protected:
  std::unique_ptr<DraftClient> MakeClient(absl::Duration deadline = absl::Seconds(30)) {
    ClientOptions options;
    options.transport = GetParam();
    options.deadline = deadline;
    options.patience = absl::Seconds(20);
    auto client = DraftClient::Create(server_.address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::unique_ptr<DraftSession> OpenSession(DraftClient& client, SessionSettings settings = {}) {
    auto session = client.Open(FakeDraftService::FittingManifest(), std::move(settings));
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  FakeSession OnlySession() {
    const auto sessions = service_.Sessions();
    EXPECT_EQ(sessions.size(), 1u);
    return sessions.empty() ? FakeSession() : sessions.begin()->second;
  }
  void ExpectServerHolds(const Worker& worker) {
    const FakeSession held = OnlySession();
    EXPECT_THAT(held.tokens, ::testing::ElementsAreArray(worker.tokens()));
    EXPECT_TRUE(held.bytes == worker.bytes()) << "rows differ from the worker's";
  }

  FakeDraftService service_;
  TestServer server_{&service_};
};

// For INSTANTIATE_TEST_SUITE_P: names a case after its transport.
inline std::string TransportName(const ::testing::TestParamInfo<TransportKind>& test) {
  return test.param == TransportKind::kUnary ? "Unary" : "Stream";
}

}  // namespace aerie
