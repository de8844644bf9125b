#include "common/address.h"

#include "gtest/gtest.h"

namespace aerie {
namespace {

TEST(AddressTest, TellsLoopbackFromTheRestOfTheWorld) {
  for (const char* address :
       {"unix:/run/x.sock", "localhost:1", "127.0.0.1:1", "127.3.2.1:1", "[::1]:1"}) {
    EXPECT_FALSE(IsPublicAddress(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "[::]:1", "10.1.2.3:1", "aerie.example:1", "127.evil.example:1",
        "127.0.0.1.evil.example:1", "localhost.evil.example:1", "127.0.0.256:1"}) {
    EXPECT_TRUE(IsPublicAddress(address)) << address;
  }
}

}  // namespace
}  // namespace aerie
