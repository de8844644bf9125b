// What libraries have to say goes through our log, or nowhere.
#include "server/transport/grpc_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "aerie/v1/draft.pb.h"

namespace aerie {
namespace {

TEST(GrpcLogTest, AMessageOfNoUtf8WritesNoLineOfItsOwn) {
  SendGrpcLogToOurs();
  testing::internal::CaptureStderr();
  v1::DraftRequest request;
  EXPECT_FALSE(request.ParseFromString("\x0a\x01\xff"));  // session_id: one byte that begins none
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace aerie
