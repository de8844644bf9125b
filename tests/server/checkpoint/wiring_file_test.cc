#include "server/checkpoint/wiring_file.h"

#include <string>

#include "absl/strings/str_replace.h"
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
}

}  // namespace
}  // namespace aerie
