// Holds the methods that have series to those that the proto file has.
#include <string>
#include <vector>

#include "aerie/v1/draft.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metric_names.h"

namespace aerie {
namespace {

TEST(RpcMethodsTest, AreThoseOfTheDraftService) {
  const auto* service = v1::DraftRequest::descriptor()->file()->FindServiceByName("DraftService");
  ASSERT_NE(service, nullptr);
  EXPECT_EQ(service->full_name(), kDraftService);
  std::vector<std::string> expected, listed;
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* method = service->method(i);
    EXPECT_EQ(method->client_streaming(), method->server_streaming()) << method->name();
    expected.push_back(method->name() + (method->client_streaming() ? " stream" : " unary"));
  }
  for (const RpcName& name : kRpcMethods) {
    EXPECT_EQ(name.service, kDraftService);
    listed.push_back(std::string(name.method) +
                     (name.type == RpcType::kBidiStream ? " stream" : " unary"));
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace aerie
