#include "server/inspect/inspect_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/guard/guard_profile_json.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"

namespace aerie {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

InspectReport Report(const TinyHead& head, bool with_target = true,
                     const CheckpointOptions& options = {}) {
  const TemporaryFolder folder;
  head.Write(folder);
  return MakeReport(
      InspectCheckpoint(folder.path("head"), with_target ? folder.path("target") : "", options));
}

Json AsJson(const InspectReport& report) { return Json::parse(ReportAsJson(report, 20.0)); }

TEST(InspectReportTest, TellsAllOfASoundHead) {
  const Json json = AsJson(Report(TinyHead()));
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["errors"], Json::array());
  EXPECT_EQ(json["settings"]["hidden_size"]["value"], "12");
  EXPECT_EQ(json["settings"]["hidden_size"]["source"], "tensor fc.weight");
  EXPECT_EQ(json["wiring"]["boundaries"], Json({2, 6, 9}));
  EXPECT_EQ(json["wiring"]["certainty"], "by-default-pattern");
  EXPECT_EQ(json["tensors"].size(), 15);
  EXPECT_EQ(json["tensors"][0]["name"], "fc.weight");
  EXPECT_EQ(json["tensors"][0]["shape"], Json({12, 36}));
  // All F32 numbers of the head; the maps are none.
  const int64_t numbers =
      12 * 36 + 24 * 24 + 2 * 12 * 24 + 12 * 24 + 3 * 20 * 12 + 10 * 12 + 4 * 12;
  EXPECT_EQ(json["parameter_bytes"], 4 * numbers);
  EXPECT_EQ(json["step_floor"]["parameters_read"], numbers - 12 * 36);
  EXPECT_EQ(json["version"].get<std::string>().size(), 16);
}

TEST(InspectReportTest, SettingsAreThoseOfTheServer) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  EXPECT_EQ(Report(TinyHead()).settings, checkpoint->Settings());
}

TEST(InspectReportTest, EveryFaultIsToldAtOnce) {
  TinyHead head;
  head.Set("hidden_act", "\"gelu\"");
  head.Set("rope_scaling", R"({"type":"longrope"})");
  head.Remove("d2t");
  head.tensors.push_back({"midlayer.self_attn.sinks", "F32", {1}, "1234"});
  const InspectReport report = Report(head);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(report.errors,
              ElementsAre(SaysWhatWhyAndHow("sinks"), SaysWhatWhyAndHow("longrope"),
                          SaysWhatWhyAndHow("gelu"), SaysWhatWhyAndHow("has no d2t")));
  const std::string text = ReportAsText(report, 20.0);
  for (const std::string& error : report.errors) EXPECT_THAT(text, HasSubstr(error));
}

TEST(InspectReportTest, WithoutATargetWhatHangsOnItIsUnknownAndNoError) {
  TinyHead head;
  head.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  const Json json = AsJson(Report(head, /*with_target=*/false));
  EXPECT_EQ(json["ok"], true) << json["errors"];
  EXPECT_EQ(json["wiring"]["boundaries"], Json::array());
  EXPECT_EQ(json["wiring"]["layer_ids"], Json({3, 6, 9}));
  EXPECT_EQ(json["wiring"]["certainty"], "ambiguous");
  EXPECT_EQ(json["settings"]["wiring"]["value"], "unknown");
  EXPECT_EQ(json["settings"]["embedding"]["source"], "the target's, which is not given");
}

TEST(InspectReportTest, WithoutATargetContradictionsAreStillErrors) {
  TinyHead head;
  head.Set("draft_vocab_size", "16");
  EXPECT_FALSE(Report(head, /*with_target=*/false).ok);
}

TEST(InspectReportTest, AFolderThatCannotBeReadIsAnError) {
  const InspectReport report = MakeReport(InspectCheckpoint("/no/such/folder", "", {}));
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(report.errors, ElementsAre(SaysWhatWhyAndHow("/no/such/folder is no folder")));
  EXPECT_EQ(AsJson(report)["settings"], Json::object());
}

TEST(InspectReportTest, NamesThatAreNoTextDoNotStopTheReport) {
  TinyHead head;
  head.Set("architectures", "[\"\\u0007\"]");
  EXPECT_NO_THROW(AsJson(Report(head)));
}

TEST(InspectReportTest, TheFloorIsBytesOverBandwidth) {
  EXPECT_DOUBLE_EQ(FloorSeconds(1'000'000'000, 2, 20.0), 0.1);
  EXPECT_DOUBLE_EQ(FloorSeconds(1'000'000'000, 4, 20.0), 0.2);
}

TEST(InspectReportTest, AFlagShowsAsTheSource) {
  CheckpointOptions options;
  options.head.rope_theta = 7e5;
  options.head.layer_ids = LayerIdConvention::kInputOfLayer;
  TinyHead head;
  head.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  const Json json = AsJson(Report(head, true, options));
  EXPECT_EQ(json["settings"]["rope_theta"]["source"], "flag --rope-theta");
  EXPECT_EQ(json["wiring"]["certainty"], "declared-by-flag");
  EXPECT_EQ(json["wiring"]["convention"], "input-of-layer");
}

// A sound head beside a wiring.json with this guard's profile.
InspectReport ReportWithGuard(const std::string& guard) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  const std::string digest = LoadCheckpoint(folder.path("head"), folder.path("target"))->version;
  EXPECT_TRUE(WriteFile(
      folder.path("head/wiring.json"),
      absl::StrCat(R"({"version":1,"verified":true,"weights_digest":")", digest,
                   R"(","captures":[{"kind":"boundary","boundary":2},)",
                   R"({"kind":"boundary","boundary":6},{"kind":"boundary","boundary":9}])",
                   guard.empty() ? "" : ",\"guard\":", guard, "}")));
  return MakeReport(InspectCheckpoint(folder.path("head"), folder.path("target"), {}));
}

// A profile of captures of so many channels, of which one is looked at.
std::string GuardText(int32_t hidden) {
  GuardProfile profile{.hidden_size = hidden, .channels = {0}, .rows = 321, .sequences = 7};
  for (const int32_t boundary : {2, 6, 9}) {
    profile.places.push_back({.capture = Capture::Boundary(boundary),
                              .center = {0},
                              .scale = {1},
                              .size = {1},
                              .rms = 1.0,
                              .alternatives = {{Capture::FinalNorm(), {1.0f}, 0.0f, true}},
                              .landmarks = {0, 1},
                              .landmark_sizes = {1, 1}});
  }
  return GuardProfileToJson(profile);
}

TEST(InspectReportTest, SaysWhetherThereIsAGuardsProfile) {
  const InspectReport with = ReportWithGuard(GuardText(12));
  EXPECT_TRUE(with.ok) << with.errors.front();
  EXPECT_THAT(ReportAsText(with, 20.0), HasSubstr("profile: of 321 rows from 7 sequences"));
  EXPECT_THAT(AsJson(with)["wiring"]["guard_profile"].get<std::string>(), HasSubstr("321 rows"));
  const InspectReport without = ReportWithGuard("");
  EXPECT_TRUE(without.ok);
  EXPECT_THAT(ReportAsText(without, 20.0), HasSubstr("none; aerie-verify --write-wiring"));
  EXPECT_TRUE(AsJson(without)["wiring"]["guard_profile"].is_null());
}

TEST(InspectReportTest, AGuardsProfileThatTheServerWouldRefuseIsAnError) {
  for (const std::string& guard : {std::string("{}"), GuardText(13)}) {
    const InspectReport report = ReportWithGuard(guard);
    EXPECT_FALSE(report.ok);
    EXPECT_THAT(report.errors, ElementsAre(SaysWhatWhyAndHow("wiring.json beside the head")));
  }
}

}  // namespace
}  // namespace aerie
