#include "server/checkpoint/weights_folder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/safetensors/safetensors_writer.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::HasSubstr;

constexpr char kIndex[] = "model.safetensors.index.json";

std::string Shard(const std::string& tensor) { return Safetensors({{tensor, "F32", {1}, "1234"}}); }

std::string Message(const absl::StatusOr<WeightsFolder>& folder) {
  return std::string(folder.status().message());
}

TEST(WeightsFolderTest, ASingleFileNeedsNoIndex) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("model.safetensors"), Shard("a")));
  const auto weights = WeightsFolder::Open(folder.path());
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ(weights->tensors().size(), 1);
  EXPECT_EQ(weights->Digest().size(), 16);
}

TEST(WeightsFolderTest, ShardsComeTogether) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("1.safetensors"), Shard("a")));
  ASSERT_TRUE(WriteFile(folder.path("2.safetensors"), Shard("b")));
  ASSERT_TRUE(WriteFile(folder.path(kIndex),
                        R"({"weight_map":{"b":"2.safetensors","a":"1.safetensors"}})"));
  const auto weights = WeightsFolder::Open(folder.path());
  ASSERT_THAT(weights, IsOk());
  ASSERT_EQ(weights->tensors().size(), 2);
  EXPECT_EQ(weights->tensors()[0].name, "a");
  EXPECT_EQ(weights->tensors()[1].bytes, "1234");
}

struct IndexCase {
  std::string name, index, seen;
};

class BadIndexTest : public testing::TestWithParam<IndexCase> {};

TEST_P(BadIndexTest, IsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("1.safetensors"), Shard("a")));
  ASSERT_TRUE(WriteFile(folder.path("2.safetensors"), Shard("b")));
  ASSERT_TRUE(WriteFile(folder.path(kIndex), GetParam().index));
  const auto weights = WeightsFolder::Open(folder.path());
  ASSERT_THAT(weights, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Message(weights), SaysWhatWhyAndHow(GetParam().seen));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BadIndexTest,
    testing::ValuesIn(std::vector<IndexCase>{
        {"NoJson", "{", "malformed"},
        {"NoMap", R"({"metadata":{}})", "no weight_map"},
        {"EmptyMap", R"({"weight_map":{}})", "no weight_map"},
        {"NoString", R"({"weight_map":{"a":1}})", "the entry of \"a\" is no string"},
        {"PathUpwards", R"({"weight_map":{"a":"../1.safetensors"}})", "is a path"},
        {"AbsolutePath", R"({"weight_map":{"a":"/etc/passwd"}})", "is a path"},
        {"Parent", R"({"weight_map":{"a":".."}})", "is a path"},
        {"HiddenZero", R"({"weight_map":{"a":"1.safetensors\u0000x"}})", "is a path"},
        {"ShardMissing", R"({"weight_map":{"a":"1.safetensors","b":"3.safetensors"}})",
         "the shard \"3.safetensors\" is not there"},
        {"WrongShard", R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})",
         "is not entered for it"},
        {"TensorMissing",
         R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"}})",
         "tensor \"c\" is not in its shard"},
        {"TensorNotEntered", R"({"weight_map":{"a":"1.safetensors","x":"2.safetensors"}})",
         "tensor \"b\" of shard \"2.safetensors\" is not entered"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(WeightsFolderTest, APickledFileIsRefusedWithTheConversion) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("pytorch_model.bin"), "PK"));
  const auto weights = WeightsFolder::Open(folder.path());
  ASSERT_THAT(weights, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Message(weights), SaysWhatWhyAndHow("holds pytorch_model.bin"));
  EXPECT_THAT(Message(weights), HasSubstr("save_file("));
}

TEST(WeightsFolderTest, AFolderWithoutWeightsAndNoFolderAreToldApart) {
  const TemporaryFolder folder;
  EXPECT_THAT(Message(WeightsFolder::Open(folder.path())), SaysWhatWhyAndHow("holds no weights"));
  EXPECT_THAT(Message(WeightsFolder::Open(folder.path("none"))), SaysWhatWhyAndHow("is no folder"));
}

TEST(WeightsFolderTest, ASingleFileBesideAnIndexIsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("model.safetensors"), Shard("a")));
  ASSERT_TRUE(WriteFile(folder.path(kIndex), "{}"));
  EXPECT_THAT(Message(WeightsFolder::Open(folder.path())), SaysWhatWhyAndHow("holds both"));
}

}  // namespace
}  // namespace aerie
