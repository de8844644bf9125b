#include "server/config/port_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class PortFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "aerie-port-file-", getpid());
  const std::string path_ = absl::StrCat(folder_, "/ports.json");
};

TEST_F(PortFileTest, HoldsEveryAddressAndNothingElseIsLeftBesideIt) {
  ASSERT_THAT(WritePortFile(path_, {.grpc = {"127.0.0.1:1", "unix:/x"},
                                    .metrics = "127.0.0.1:2",
                                    .admin = "127.0.0.1:3"}),
              IsOk());
  EXPECT_EQ(Contents(path_),
            "{\"admin\":\"127.0.0.1:3\",\"grpc\":[\"127.0.0.1:1\",\"unix:/x\"],\"metrics\":"
            "\"127.0.0.1:2\"}\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(PortFileTest, SaysNullForWhatIsOff) {
  ASSERT_THAT(WritePortFile(path_, {.grpc = {"127.0.0.1:1"}}), IsOk());
  EXPECT_EQ(Contents(path_), "{\"admin\":null,\"grpc\":[\"127.0.0.1:1\"],\"metrics\":null}\n");
}

TEST_F(PortFileTest, ReplacesAndRemovesThatOfAnEarlierRun) {
  ASSERT_THAT(WritePortFile(path_, {.grpc = {"a:1"}}), IsOk());
  ASSERT_THAT(WritePortFile(path_, {.grpc = {"b:2"}}), IsOk());
  EXPECT_THAT(Contents(path_), ::testing::HasSubstr("b:2"));
  EXPECT_THAT(RemovePortFile(path_), IsOk());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THAT(RemovePortFile(path_), IsOk()) << "no file is fine";
}

TEST_F(PortFileTest, NamesTheFileThatCannotBeWritten) {
  const absl::Status status = WritePortFile(folder_ + "/none/ports.json", {.grpc = {"a:1"}});
  EXPECT_THAT(status, Refuses(absl::StatusCode::kUnavailable, ""));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/none/ports.json"));
}

}  // namespace
}  // namespace aerie
