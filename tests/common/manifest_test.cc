#include "common/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_detail.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Wiring MakeWiring(const std::vector<int32_t>& boundaries) {
  std::vector<Capture> captures;
  for (const int32_t b : boundaries) captures.push_back(Capture::Boundary(b));
  return *Wiring::Create(captures, 61);
}

ManifestRequirement Requirement() { return {"head", 61, 7168, 163840, MakeWiring({2, 30, 58})}; }

Manifest Fitting() {
  Manifest manifest;
  manifest.num_layers = 61;
  manifest.hidden_size = 7168;
  manifest.vocab_size = 163840;
  manifest.wiring = MakeWiring({2, 30, 58});
  return manifest;
}

TEST(ManifestTest, FitsWhenEveryFieldAgrees) {
  EXPECT_TRUE(CheckFits(Fitting(), Requirement()).ok());
  EXPECT_EQ(Fitting().row_width(), 21504);
}

TEST(ManifestTest, NamesEveryFieldThatDiffers) {
  Manifest manifest = Fitting();
  manifest.wiring = MakeWiring({3, 31, 59});
  manifest.vocab_size = 32000;
  const absl::Status status = CheckFits(manifest, Requirement());
  ASSERT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("captures is [3, 31, 59], expected [2, 30, 58]"));
  const ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(detail.reason, kReasonManifestMismatch);
  EXPECT_THAT(detail.mismatches,
              ElementsAre(FieldMismatch{"vocab_size", "163840", "32000"},
                          FieldMismatch{"captures", "[2, 30, 58]", "[3, 31, 59]"}));
}

TEST(ManifestTest, ASwappedOrderDoesNotFit) {
  Manifest manifest = Fitting();
  manifest.wiring = MakeWiring({30, 2, 58});
  EXPECT_FALSE(CheckFits(manifest, Requirement()).ok());
}

TEST(ManifestTest, AnUnnamedDrafterIsTheOnlyOneAndAWrongNameIsRefused) {
  Manifest manifest = Fitting();
  manifest.drafter = "other";
  EXPECT_FALSE(CheckFits(manifest, Requirement()).ok());
  manifest.drafter = "head";
  EXPECT_TRUE(CheckFits(manifest, Requirement()).ok());
}

TEST(ManifestTest, FusedRowsFitTheFcThatTheyWereMadeWith) {
  ManifestRequirement requirement = Requirement();
  requirement.fused_width = 7168;
  requirement.fc_digest = "abcd";
  Manifest manifest = Fitting();
  manifest.fused_width = 7168;
  manifest.fc_digest = "abcd";
  EXPECT_TRUE(CheckFits(manifest, requirement).ok());
  EXPECT_EQ(manifest.row_width(), 7168);

  manifest.fused_width = 4096;
  manifest.fc_digest = "ef01";
  EXPECT_THAT(DetailOf(CheckFits(manifest, requirement)).mismatches,
              ElementsAre(FieldMismatch{"fused.width", "7168", "4096"},
                          FieldMismatch{"fused.fc_digest", "abcd", "ef01"}));
  // A head with norms in front of its fc.
  requirement.fc_digest.clear();
  EXPECT_THAT(std::string(CheckFits(manifest, requirement).message()),
              HasSubstr("fused.fc_digest is ef01, expected no fused rows"));
}

TEST(ManifestTest, CountsTheBytesOfARowAsTheyTravel) {
  Manifest manifest = Fitting();
  EXPECT_EQ(manifest.wire_row_bytes(), 2 * 21504);
  manifest.fp8 = true;
  EXPECT_EQ(manifest.wire_row_bytes(), 4 + 21504);
  manifest.fused_width = 7168;
  EXPECT_EQ(manifest.wire_row_bytes(), 4 + 7168);
}

TEST(ErrorDetailTest, SurvivesTheStatusItTravelsIn) {
  ErrorDetail detail;
  detail.reason = kReasonBaseLengthAhead;
  detail.resend_from = 17;
  detail.retry_after = absl::Milliseconds(250);
  detail.mismatches = {{"a\tb", "line\nbreak", ""}};
  const ErrorDetail back = DetailOf(WithDetail(absl::AbortedError("x"), detail));
  EXPECT_EQ(back.reason, detail.reason);
  EXPECT_EQ(back.resend_from, 17);
  EXPECT_EQ(back.retry_after, absl::Milliseconds(250));
  EXPECT_EQ(back.mismatches, detail.mismatches);
}

TEST(ErrorDetailTest, IsEmptyWhenNoneWasAttached) {
  const ErrorDetail detail = DetailOf(absl::AbortedError("x"));
  EXPECT_THAT(detail.reason, IsEmpty());
  EXPECT_FALSE(detail.resend_from.has_value());
  EXPECT_FALSE(detail.retry_after.has_value());
}

}  // namespace
}  // namespace aerie
