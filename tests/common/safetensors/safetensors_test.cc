#include "common/safetensors/safetensors.h"

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

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SafetensorsTest, EntriesComeInTheOrderOfTheirDataWithOffsetsIntoTheFile) {
  const std::string file =
      RawSafetensors(R"({"late":{"dtype":"I64","shape":[],"data_offsets":[6,14]},)"
                     R"("__metadata__":{"format":"pt"},)"
                     R"("early":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]}})",
                     "abcdefghijklmn");
  const auto entries = ParseSafetensorsHeader(file, file.size());
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2);
  EXPECT_EQ((*entries)[0].name, "early");
  EXPECT_EQ((*entries)[0].type, TensorType::kBF16);
  EXPECT_THAT((*entries)[0].shape, ElementsAre(3, 1));
  EXPECT_EQ(file.substr((*entries)[0].begin, 6), "abcdef");
  EXPECT_EQ((*entries)[1].name, "late");
  EXPECT_THAT((*entries)[1].shape, ElementsAre());
  EXPECT_EQ(file.substr((*entries)[1].begin, 8), "ghijklmn");
  EXPECT_EQ((*entries)[1].end, file.size());
}

TEST(SafetensorsTest, EmptyTensorsMayLieAnywhereBetweenOthers) {
  const std::string file =
      RawSafetensors(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                     R"("a":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                     R"("c":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                     "1234");
  EXPECT_THAT(ParseSafetensorsHeader(file, file.size()), IsOk());
}

TEST(SafetensorsTest, AHeaderWithoutTensorsNeedsNoData) {
  const std::string file = RawSafetensors("{}   ", "");
  EXPECT_THAT(ParseSafetensorsHeader(file, file.size()), IsOk());
}

// `file` holds one fault; `seen` is what the message has to tell of it.
struct DamagedCase {
  std::string name;
  std::string file;
  std::string seen;
};

std::string One(const std::string& entry, const std::string& data = "12345678") {
  return RawSafetensors(R"({"w":)" + entry + "}", data);
}

std::string Two(const std::string& first, const std::string& second, const std::string& data) {
  return RawSafetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + first +
                            R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}",
                        data);
}

class DamagedSafetensorsTest : public testing::TestWithParam<DamagedCase> {};

TEST_P(DamagedSafetensorsTest, IsRefusedWithWhatIsWrong) {
  const auto entries = ParseSafetensorsHeader(GetParam().file, GetParam().file.size());
  ASSERT_THAT(entries, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(entries.status().message()), SaysWhatWhyAndHow(GetParam().seen));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, DamagedSafetensorsTest,
    testing::ValuesIn(std::vector<DamagedCase>{
        {"Empty", "", "the file has 0 bytes"},
        {"ShorterThanALength", "1234567", "the file has 7 bytes"},
        {"HeaderLongerThanTheFile", std::string("\x09\0\0\0\0\0\0\0{}", 10),
         "the header claims 9 bytes"},
        {"HeaderLengthOfAllOnes", std::string(8, '\xff') + "{}",
         "the header claims 18446744073709551615 bytes"},
        {"HeaderIsNoJson", RawSafetensors("{\"w\":", ""), "malformed"},
        {"HeaderIsNoUtf8", RawSafetensors("{\"\xff\":1}", ""), "malformed"},
        {"HeaderIsAnArray", RawSafetensors("[]", ""), "no object"},
        {"HeaderIsANumber", RawSafetensors("7", ""), "no object"},
        {"HeaderIsDeep", RawSafetensors("{\"a\":" + std::string(50000, '['), ""),
         "nested more than 4 deep"},
        {"TensorTwice", RawSafetensors(R"({"w":{},"w":{}})", ""), "the key \"w\" stands twice"},
        {"FieldTwice", One(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"),
         "the key \"dtype\" stands twice"},
        {"MetadataIsNoObject", RawSafetensors(R"({"__metadata__":[]})", ""),
         "__metadata__ is no object"},
        {"MetadataIsNoString", RawSafetensors(R"({"__metadata__":{"a":1}})", ""),
         "entry \"a\" is no string"},
        {"TensorIsNoObject", One("3"), "tensor \"w\" is no object"},
        {"UnknownField", One(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
         "the field \"x\""},
        {"NoType", One(R"({"shape":[2],"data_offsets":[0,8]})"), "no dtype"},
        {"TypeIsNoString", One(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), "no dtype"},
        {"UnknownType", One(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})"),
         "the element type \"F4\""},
        {"NoShape", One(R"({"dtype":"F32","data_offsets":[0,8]})"), "no usable shape"},
        {"ShapeOfManyDimensions",
         One(R"({"dtype":"F32","shape":[2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]})"),
         "no usable shape"},
        {"NegativeExtent", One(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
         "an extent"},
        {"FractionalExtent", One(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"),
         "an extent"},
        {"ExtentAbove63Bits",
         One(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})"), "an extent"},
        {"ShapeWrapsAroundToTheRightSize",
         One(R"({"dtype":"F32","shape":[4611686018427387904,4,2],"data_offsets":[0,8]})"),
         "too large to count"},
        {"NoOffsets", One(R"({"dtype":"F32","shape":[2]})"), "no data_offsets"},
        {"OneOffset", One(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "no data_offsets"},
        {"NegativeOffset", One(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"),
         "no data_offsets"},
        {"OffsetAbove64Bits",
         One(R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551624]})"),
         "no data_offsets"},
        {"InvertedRange", One(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
         "lies at bytes 8 to 0"},
        {"PastTheEnd", One(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
         "lies at bytes 0 to 12"},
        {"FarPastTheEnd",
         One(R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551600,18446744073709551608]})"),
         "lies at bytes 18446744073709551600"},
        {"FewerBytesThanTheShape", One(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
         "holds 8 bytes"},
        {"MoreBytesThanTheShape", One(R"({"dtype":"BF16","shape":[3],"data_offsets":[0,8]})"),
         "holds 8 bytes"},
        {"Overlap", Two("[0,4]", "[2,6]", "123456"), "inside the tensor before it"},
        {"SameRangeTwice", Two("[0,4]", "[0,4]", "1234"), "inside the tensor before it"},
        {"Hole", Two("[0,4]", "[6,10]", "1234567890"), "behind a hole"},
        {"HoleInFront", One(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
         "behind a hole"},
        {"TrailingBytes", Two("[0,4]", "[4,8]", "123456789"), "1 bytes follow the last tensor"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SafetensorsTest, AHeaderAboveTheCapIsRefusedBeforeItIsRead) {
  // 2^32 bytes of header in a file that claims to be larger: nothing of that size is there to be
  // read.
  const std::string head("\0\0\0\0\x01\0\0\0{}", 10);
  const auto entries = ParseSafetensorsHeader(head, uint64_t{1} << 40);
  ASSERT_THAT(entries, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(entries.status().message()), HasSubstr("at most 100000000"));
}

TEST(SafetensorsTest, NamesInMessagesAreEscapedAndCut) {
  const std::string file = RawSafetensors("{\"\\u0007" + std::string(5000, 'x') + "\":3}", "");
  const auto entries = ParseSafetensorsHeader(file, file.size());
  EXPECT_THAT(std::string(entries.status().message()), HasSubstr("\\007xxx"));
  EXPECT_LT(entries.status().message().size(), 400);
}

TEST(SafetensorsFileTest, TensorsAreViewsOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  ASSERT_TRUE(
      WriteFile(path, Safetensors({{"b", "F32", {2, 1}, "12345678"}, {"a", "BOOL", {3}, "xyz"}})));
  auto file = SafetensorsFile::Open(path);
  ASSERT_THAT(file, IsOk());
  const SafetensorsFile moved = *std::move(file);
  ASSERT_NE(moved.Find("a"), nullptr);
  EXPECT_EQ(moved.Find("a")->bytes, "xyz");
  EXPECT_EQ(moved.Find("b")->Describe(), "F32 [2, 1]");
  EXPECT_EQ(moved.Find("b")->elements(), 2);
  EXPECT_EQ(moved.Find("c"), nullptr);
  EXPECT_EQ(moved.tensors().size(), 2);
}

TEST(SafetensorsFileTest, AnErrorNamesThePath) {
  const TemporaryFolder folder;
  EXPECT_THAT(SafetensorsFile::Open(folder.path("none")), StatusIs(absl::StatusCode::kNotFound));
  const std::string path = folder.path("cut.safetensors");
  std::string bytes = Safetensors({{"b", "F32", {2}, "12345678"}});
  bytes.pop_back();
  ASSERT_TRUE(WriteFile(path, bytes));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_THAT(file, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
  EXPECT_THAT(SafetensorsFile::Open(folder.path()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SafetensorsFileTest, AnEmptyFileIsNoSafetensors) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("empty"), ""));
  EXPECT_THAT(SafetensorsFile::Open(folder.path("empty")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace aerie
