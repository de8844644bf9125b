// Holds the methods that have series to those that the proto file has.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aerie/v1/admin.pb.h"
#include "aerie/v1/draft.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metric_names.h"

namespace aerie {
namespace {

void AddMethods(const google::protobuf::ServiceDescriptor* service,
                std::vector<std::string>* methods) {
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* method = service->method(i);
    EXPECT_EQ(method->client_streaming(), method->server_streaming()) << method->full_name();
    methods->push_back(method->full_name() + (method->client_streaming() ? " stream" : " unary"));
  }
}

TEST(RpcMethodsTest, AreThoseOfBothServices) {
  std::vector<std::string> expected, listed;
  AddMethods(v1::DraftRequest::descriptor()->file()->FindServiceByName("DraftService"), &expected);
  AddMethods(v1::GetWiringReportRequest::descriptor()->file()->FindServiceByName("AdminService"),
             &expected);
  for (const RpcName& name : kRpcMethods) {
    listed.push_back(absl::StrCat(std::string(name.service), ".", std::string(name.method),
                                  name.type == RpcType::kBidiStream ? " stream" : " unary"));
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace aerie
