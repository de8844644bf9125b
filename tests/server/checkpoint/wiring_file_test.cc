#include "server/checkpoint/wiring_file.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/safetensors/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/checkpoint.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSound[] =
    R"({"version":1,"verified":true,"weights_digest":"0123","captures":[)"
    R"({"kind":"boundary","boundary":2},{"kind":"boundary","boundary":7},{"kind":"final_norm"}]})";

TEST(WiringFileTest, HoldsCapturesInOrder) {
  Complaints complaints;
  const auto measured = ReadMeasuredWiring(kSound, "0123", complaints);
  ASSERT_TRUE(measured.has_value());
  EXPECT_THAT(measured->captures,
              ElementsAre(Capture::Boundary(2), Capture::Boundary(7), Capture::FinalNorm()));
  EXPECT_THAT(complaints.list(), IsEmpty());
}

TEST(WiringFileTest, IsRefusedForOtherWeights) {
  Complaints complaints;
  EXPECT_FALSE(ReadMeasuredWiring(kSound, "4567", complaints).has_value());
  EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow("is of weights \"0123\"")));
}

TEST(WiringFileTest, IsRefusedWhenAnythingInItIsOdd) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"version\":1", "\"v\":1"},
                                 {"\"version\":1", "\"version\":2"},
                                 {"true", "false"},
                                 {"true", "1"},
                                 {"\"0123\"", "123"},
                                 {"\"boundary\":7", "\"boundary\":-7"},
                                 {"\"boundary\":7", "\"boundary\":99999999999"},
                                 {"\"final_norm\"", "\"first_norm\""},
                                 {"{\"kind\":\"final_norm\"}", "7"},
                                 {"]}", "]"}}) {
    Complaints complaints;
    const std::string text = absl::StrReplaceAll(kSound, {{from, to}});
    EXPECT_FALSE(ReadMeasuredWiring(text, "0123", complaints).has_value()) << text;
    EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow("wiring.json beside the head")));
  }
}

TEST(WiringFileTest, SettlesAnAmbiguousHead) {
  const TemporaryFolder folder;
  TinyHead head;
  head.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  head.Write(folder);
  const auto load = [&] { return LoadCheckpoint(folder.path("head"), folder.path("target")); };
  EXPECT_THAT(load(), StatusIs(absl::StatusCode::kFailedPrecondition));
  // The digest does not depend on config.json.
  TinyHead().Write(folder);
  const std::string digest = load()->version;
  head.Write(folder);
  const std::string measured = absl::StrReplaceAll(
      kSound,
      {{"0123", digest}, {"{\"kind\":\"final_norm\"}", R"({"kind":"boundary","boundary":10})"}});
  ASSERT_TRUE(WriteFile(folder.path("head/wiring.json"), measured));
  const auto checkpoint = load();
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->spec.wiring.value.ToString(), "[2, 7, 10]");
  EXPECT_EQ(checkpoint->wiring_claim.certainty, WiringCertainty::kCertain);
  EXPECT_THAT(checkpoint->spec.wiring.source, HasSubstr("measured"));
  EXPECT_EQ(checkpoint->guard_profile, "");
  const std::string guarded = measured.substr(0, measured.size() - 1) + ",\"guard\":{\"a\":1}}";
  ASSERT_TRUE(WriteFile(folder.path("head/wiring.json"), guarded));
  ASSERT_THAT(load(), IsOk());
  EXPECT_EQ(load()->guard_profile, "{\"a\":1}");
}

WiringMeasurement FullMeasurement() {
  WiringMeasurement measurement;
  measurement.captures = {Capture::Boundary(2), Capture::FinalNorm()};
  measurement.weights_digest = "0123";
  measurement.convention = "output-of-layer";
  measurement.verdict = "verified";
  measurement.expected = WiringExpectation{1524, 12, -2.526, {0.39, 0.3}, {0.39, 0.15}, 1.54};
  measurement.tokens_digest = "fedc";
  measurement.fingerprints = {R"({"rows":7})", R"({"rows":8})"};
  measurement.guard = R"({"places":[{"alternatives":[{"capture":{"kind":"final_norm"}}]}]})";
  return measurement;
}

TEST(WiringFileTest, ReadsBackEverythingThatWasWritten) {
  const WiringMeasurement written = FullMeasurement();
  Complaints complaints;
  const auto read = ReadWiringMeasurement(WiringMeasurementAsJson(written), "0123", complaints);
  ASSERT_TRUE(read.has_value()) << complaints.list()[0];
  EXPECT_EQ(read->captures, written.captures);
  EXPECT_EQ(read->convention, written.convention);
  EXPECT_EQ(read->verdict, written.verdict);
  EXPECT_EQ(read->expected, written.expected);
  EXPECT_EQ(read->tokens_digest, written.tokens_digest);
  EXPECT_EQ(read->fingerprints, written.fingerprints);
  EXPECT_EQ(read->guard, written.guard);
}

TEST(WiringFileTest, ReadsFilesThatSayLess) {
  Complaints complaints;
  const auto read = ReadWiringMeasurement(kSound, "0123", complaints);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->expected, std::nullopt);
  EXPECT_THAT(read->fingerprints, IsEmpty());
  EXPECT_EQ(read->guard, "");
}

TEST(WiringFileTest, IsRefusedWhenTheGuardsProfileIsNoObject) {
  for (const char* guard : {"7", "[]", "\"profile\"", "null"}) {
    Complaints complaints;
    const std::string text =
        absl::StrReplaceAll(kSound, {{"]}", absl::StrCat("],\"guard\":", guard, "}")}});
    EXPECT_FALSE(ReadWiringMeasurement(text, "0123", complaints).has_value()) << text;
    EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow("\"guard\" that is no object")));
  }
}

TEST(WiringFileTest, IsRefusedWhenAnExpectationIsOdd) {
  const std::string sound = WiringMeasurementAsJson(FullMeasurement());
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"1524", "0"},
                                 {"1524", "\"many\""},
                                 {"-2.526", "2.526"},
                                 {"0.15", "1.15"},
                                 {"0.15", "\"x\""},
                                 {"1.54", "0.5"},
                                 {"\"rows\": 12", "\"lines\": 12"},
                                 {"{\n   \"rows\": 7\n  },", ""},
                                 {"\"output-of-layer\"", "7"}}) {
    const std::string text = absl::StrReplaceAll(sound, {{from, to}});
    if (text == sound) continue;
    Complaints complaints;
    EXPECT_FALSE(ReadWiringMeasurement(text, "0123", complaints).has_value()) << text;
    EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow("wiring.json beside the head")));
  }
}

TEST(WiringFileTest, IsReplacedAsAWholeAndLeavesNothingElse) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.path("wiring.json"), "old"));
  ASSERT_THAT(WriteWiringFile(folder.path(), FullMeasurement()), IsOk());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "wiring.json");
    ++files;
  }
  EXPECT_EQ(files, 1);
  const auto text = ReadSmallFile(folder.path("wiring.json"), 1'000'000);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, WiringMeasurementAsJson(FullMeasurement()));
}

TEST(WiringFileTest, CannotBeWrittenWhereThereIsNoFolder) {
  const TemporaryFolder folder;
  const absl::Status status = WriteWiringFile(folder.path("nowhere"), FullMeasurement());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(std::string(status.message()), SaysWhatWhyAndHow("wiring.json cannot be written"));
}

TEST(WiringFileTest, IsNotReadWhenItIsToBeMeasuredAnew) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  ASSERT_TRUE(WriteFile(folder.path("head/wiring.json"), "stale"));
  EXPECT_FALSE(LoadCheckpoint(folder.path("head"), folder.path("target")).ok());
  CheckpointOptions options;
  options.ignore_wiring_file = true;
  EXPECT_THAT(LoadCheckpoint(folder.path("head"), folder.path("target"), options), IsOk());
}

}  // namespace
}  // namespace aerie
