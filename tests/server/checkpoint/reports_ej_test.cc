// What people met with long contexts and token ids (E) and with hostile or damaged files (J), as
// far as it is the loader's.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/checkpoint.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

absl::StatusOr<Checkpoint> Load(const TinyHead& head) {
  const TemporaryFolder folder;
  head.Write(folder);
  return LoadCheckpoint(folder.path("head"), folder.path("target"));
}

TEST(FieldReport, E1_TheStatedLengthLimitsNothing) {
  TinyHead head;
  head.Set("max_position_embeddings", "2048");
  const auto limited = Load(head), unlimited = Load(TinyHead());
  ASSERT_THAT(limited, IsOk());
  ASSERT_THAT(unlimited, IsOk());
  EXPECT_EQ(limited->Settings(), unlimited->Settings());
}

TEST(FieldReport, E3_TheTwoWidthsAreKeptApart) {
  TinyHead head;
  head.SetTarget("hidden_size", "18");  // fc has 36 columns, which two such captures fill as well
  const auto checkpoint = Load(head);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(checkpoint.status().message()),
              SaysWhatWhyAndHow("fc.weight takes 2 captures"));
}

TEST(FieldReport, E5_EveryIdOfTheMapIsTheTargets) {
  const auto checkpoint = Load(TinyHead());
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->draft_to_target, Each(Ge(0)));
  EXPECT_THAT(checkpoint->draft_to_target, Each(Lt(checkpoint->target.vocab_size)));
}

// Loads the sound tiny head after `change` of the bytes of its file.
template <typename Change>
std::string RefusalOfBytes(Change change) {
  const TemporaryFolder folder;
  const TinyHead head;
  head.Write(folder);
  std::string bytes = Safetensors(head.tensors);
  change(bytes);
  EXPECT_TRUE(WriteFile(folder.path("head/model.safetensors"), bytes));
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  EXPECT_THAT(checkpoint, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(checkpoint.status().message()), HasSubstr("model.safetensors"));
  return std::string(checkpoint.status().message());
}

TEST(FieldReport, J1_InvertedAndNegativeOffsetsAreRefused) {
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) {
                ASSERT_NE(bytes.find("[0,1728]"), std::string::npos);
                bytes = absl::StrReplaceAll(bytes, {{"[0,1728]", "[1728,0]"}});
              }),
              SaysWhatWhyAndHow("lies at bytes 1728 to 0"));
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) {
                bytes = absl::StrReplaceAll(bytes, {{"[0,1728]", "[-1,172]"}});
              }),
              SaysWhatWhyAndHow("no data_offsets of two whole numbers"));
}

TEST(FieldReport, J2_AHeaderLengthBeyondTheFileIsRefused) {
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) { bytes.replace(0, 8, 8, '\x7f'); }),
              SaysWhatWhyAndHow("the header claims"));
}

TEST(FieldReport, J3_ATruncatedFileIsRefusedAndSoIsALongerOne) {
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) { bytes.resize(bytes.size() - 1); }),
              SaysWhatWhyAndHow("lies at bytes 11120 to 11160"));
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) { bytes += "more"; }),
              SaysWhatWhyAndHow("4 bytes follow the last tensor"));
}

TEST(FieldReport, J4_OverlapsAndHolesAreRefused) {
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) {
                // Two norms of 12 numbers: the second where the first is.
                bytes = absl::StrReplaceAll(bytes, {{"[1776,1824]", "[1728,1776]"}});
              }),
              SaysWhatWhyAndHow("inside the tensor before it"));
  EXPECT_THAT(RefusalOfBytes([](std::string& bytes) {
                bytes = absl::StrReplaceAll(bytes, {{"[1728,1776]", "[1776,1824]"}});
              }),
              SaysWhatWhyAndHow("behind a hole of 48 bytes"));
}

TEST(FieldReport, J5_AnIndexNamesFilesBesideItOnly) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  std::filesystem::rename(folder.path("head/model.safetensors"),
                          folder.path("outside.safetensors"));
  for (const char* name : {"../outside.safetensors", "/etc/passwd", "..", ""}) {
    ASSERT_TRUE(WriteFile(folder.path("head/model.safetensors.index.json"),
                          absl::StrCat(R"({"weight_map":{"fc.weight":")", name, R"("}})")));
    const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
    ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(checkpoint.status().message()), SaysWhatWhyAndHow("is a path"));
  }
}

TEST(FieldReport, J7_AHeaderOfAnotherFormIsRefused) {
  const auto with_header = [](std::string header) {
    return RefusalOfBytes([&](std::string& bytes) { bytes = RawSafetensors(header, ""); });
  };
  EXPECT_THAT(with_header("[]"), SaysWhatWhyAndHow("the JSON is no object"));
  EXPECT_THAT(with_header(R"({"a":7})"), SaysWhatWhyAndHow("tensor \"a\" is no object"));
  EXPECT_THAT(with_header(R"({"a":{"dtype":5,"shape":[],"data_offsets":[0,0]}})"),
              SaysWhatWhyAndHow("no dtype that is a string"));
  EXPECT_THAT(with_header(R"({"a":[[[[[[]]]]]]})"), SaysWhatWhyAndHow("nested more than"));
}

}  // namespace
}  // namespace aerie
