#include "common/cgroups.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;

MATCHER_P3(Is, v2, folder, name, "") {
  return arg.v2 == v2 && arg.folder == folder && arg.name == name;
}

TEST(CgroupsTest, GoFromTheRootDown) {
  EXPECT_THAT(CgroupsOf("/m", "0::/pods/one\n", "memory"),
              ElementsAre(Is(true, "/m", "/"), Is(true, "/m/pods", "/pods"),
                          Is(true, "/m/pods/one", "/pods/one")));
}

TEST(CgroupsTest, OfTheFirstVersionAreThoseOfTheController) {
  EXPECT_THAT(CgroupsOf("/m", "5:cpu,cpuacct:/a\n4:memory:/b\n3:memory_pressure:/c\n", "memory"),
              ElementsAre(Is(false, "/m/memory", "/"), Is(false, "/m/memory/b", "/b")));
}

TEST(CgroupsTest, LinesThatAreNoneAreNotRead) {
  EXPECT_THAT(CgroupsOf("/m", "", "cpu"), ElementsAre());
  EXPECT_THAT(CgroupsOf("/m", "0:/no\nrubbish\n", "cpu"), ElementsAre());
}

TEST(CgroupsTest, AFileThatIsNotThereIsEmpty) {
  EXPECT_EQ(ReadSystemFile("/proc/self/no-such-file"), "");
  EXPECT_NE(ReadSystemFile("/proc/self/status"), "");
}

}  // namespace
}  // namespace aerie
