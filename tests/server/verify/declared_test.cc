// From a head's files and a recording on disk to what is verified.
#include "server/verify/declared.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/load_captures.h"
#include "server/verify/what_if.h"
#include "server/verify/wiring_record.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/server/recording/recording_writer.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = TensorClaim::Kind;

absl::StatusOr<DeclaredHead> Load(const TinyHead& head, const TemporaryFolder& folder) {
  head.Write(folder);
  return LoadDeclaredHead(folder.path("head"), folder.path("target"), {});
}

TEST(LoadDeclaredHeadTest, HasOneReadingOfAClearList) {
  const TemporaryFolder folder;
  const auto head = Load(TinyHead(), folder);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(head->readings, SizeIs(1));
  EXPECT_EQ(head->readings[0].wiring, head->checkpoint.spec.wiring.value);
}

TEST(LoadDeclaredHeadTest, HasBothReadingsOfAnAmbiguousList) {
  const TemporaryFolder folder;
  TinyHead tiny;
  tiny.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  const auto head = Load(tiny, folder);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(head->readings, SizeIs(2));
  EXPECT_EQ(head->readings[0].wiring.ToString(), "[4, 7, 10]");
  EXPECT_EQ(head->readings[0].convention, "output-of-layer");
  EXPECT_EQ(head->readings[1].wiring.ToString(), "[3, 6, 9]");
  EXPECT_EQ(head->readings[1].convention, "input-of-layer");
  EXPECT_EQ(head->options.head.layer_ids, LayerIdConvention::kOutputOfLayer);
}

TEST(LoadDeclaredHeadTest, HasTheOneReadingThatIsPossible) {
  const TemporaryFolder folder;
  TinyHead tiny;
  tiny.Set("eagle_aux_hidden_state_layer_ids", "[3,6,12]");  // there is no layer 12 to be behind
  const auto head = Load(tiny, folder);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(head->readings, SizeIs(1));
  EXPECT_EQ(head->readings[0].wiring.ToString(), "[3, 6, 12]");
}

TEST(LoadDeclaredHeadTest, RefusesWhatTheServerRefuses) {
  const TemporaryFolder folder;
  TinyHead tiny;
  tiny.Set("eagle_aux_hidden_state_layer_ids", "[3,6,9]");
  tiny.Remove("fc.weight");
  EXPECT_FALSE(Load(tiny, folder).ok());
}

TEST(FindCaptureTest, GoesByClaimsAndTakesTheTargetsOwnWhereNoneIsRecorded) {
  FakeRecording recording(4, 1);
  CaptureSet& captures = recording.captures;
  EXPECT_EQ(FindCapture(captures, Capture::Boundary(2)), 2);
  EXPECT_EQ(FindCapture(captures, Capture::FinalNorm()), std::nullopt);
  captures.tensors[0].claim = TensorClaim{Kind::kEmbedding};
  EXPECT_EQ(FindCapture(captures, Capture::Boundary(0)), 0);
  captures.tensors[0].origin = CaptureTensor::Origin::kTargetEmbedding;
  EXPECT_EQ(FindCapture(captures, Capture::Boundary(0)), 0);
  captures.tensors[3].claim = TensorClaim{Kind::kFinalNorm};
  captures.tensors[3].origin = CaptureTensor::Origin::kTargetNorm;
  EXPECT_EQ(FindCapture(captures, Capture::FinalNorm()), 3);
  captures.tensors[1].claim = TensorClaim{Kind::kBoundary, 2};
  EXPECT_EQ(FindCapture(captures, Capture::Boundary(2)), std::nullopt) << "two claim it";
}

TEST(SettingVariantsTest, FlipOneSettingEach) {
  const TemporaryFolder folder;
  const auto head = Load(TinyHead(), folder);
  ASSERT_THAT(head, IsOk());
  const auto variants = SettingVariants(head->checkpoint, head->options, 123.0);
  int bases = 0;
  for (const SettingVariant& variant : variants) {
    if (!variant.why_not.empty()) {
      EXPECT_EQ(variant.setting, "d2t");
      continue;
    }
    const auto other = LoadCheckpoint(folder.path("head"), folder.path("target"), variant.options);
    ASSERT_THAT(other, IsOk()) << variant.setting;
    const HeadSpec& now = other->spec;
    const HeadSpec& before = head->checkpoint.spec;
    const int changed = (now.norm_before_residual.value != before.norm_before_residual.value) +
                        (now.norm_output.value != before.norm_output.value) +
                        (now.rope.theta.value != before.rope.theta.value);
    EXPECT_EQ(changed, 1) << variant.setting;
    bases += variant.setting == "rope_theta" ? 1 : 0;
  }
  EXPECT_GE(bases, 3);
  EXPECT_THAT(variants, Contains(Field(&SettingVariant::value, "123")));
  EXPECT_THAT(variants, Contains(Field(&SettingVariant::setting, "norm_output")));
}

TEST(LoadCapturesTest, ShowARecordingAsItIs) {
  const TemporaryFolder folder;
  WrittenRecording().Write(folder);
  const auto recording = LoadRecording(folder.path());
  ASSERT_THAT(recording, IsOk());
  const CaptureSet captures = CapturesOf(*recording);
  EXPECT_EQ(captures.hidden_size, WrittenRecording::kHidden);
  ASSERT_THAT(captures.sequences, SizeIs(2));
  std::vector<float> row(WrittenRecording::kHidden);
  for (int32_t tensor = 0; tensor < 2; ++tensor) {
    EXPECT_EQ(captures.tensors[tensor].name, recording->tensors()[tensor].name);
    CopyState(captures.sequences[1], tensor, 2, absl::MakeSpan(row));
    EXPECT_EQ(row[3], ValueAt(1, tensor, 2, 3));
  }
}

TEST(LoadCapturesTest, RefuseARecordingOfAnotherTarget) {
  const TemporaryFolder folder;
  WrittenRecording().Write(folder);
  const auto recording = LoadRecording(folder.path());
  ASSERT_THAT(recording, IsOk());
  const auto check = [&](int32_t hidden, int32_t layers, int32_t vocabulary) {
    Checkpoint checkpoint;
    checkpoint.spec.target_hidden_size.value = hidden;
    checkpoint.target.num_layers = layers;
    checkpoint.spec.vocab_size.value = vocabulary;
    return CheckFitsHead(*recording, checkpoint);
  };
  EXPECT_THAT(check(WrittenRecording::kHidden, WrittenRecording::kLayers, 40), IsOk());
  for (const absl::Status& status :
       {check(7, WrittenRecording::kLayers, 40), check(WrittenRecording::kHidden, 7, 40),
        check(WrittenRecording::kHidden, WrittenRecording::kLayers, 1)}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(std::string(status.message()), SaysWhatWhyAndHow(""));
  }
}

TEST(MeasurementOfTest, WritesOnlyWhatIsSettled) {
  const TemporaryFolder folder;
  WrittenRecording().Write(folder);
  const auto recording = LoadRecording(folder.path());
  ASSERT_THAT(recording, IsOk());
  const FakeRecording states(2, 2);
  const CaptureSet& captures = states.captures;
  Reading reading;
  reading.convention = "output-of-layer";
  reading.wiring = *Wiring::Create({Capture::Boundary(3)}, WrittenRecording::kLayers);
  reading.candidate = Candidate{{1}, 0};
  VerifyResult result;
  result.drafter_version = "0123";
  result.reference = 0;
  result.sequences = 2;
  result.declared = {{"output-of-layer", "[3]", 0, ""}};
  result.candidates.emplace_back();
  result.candidates[0].rows = 9;
  result.candidates[0].mean_log_likelihood = -2.0;
  result.candidates[0].depths = DepthScores{9, {0.5}, {-2.0}, {0.5}, 1.5};
  for (const Verdict verdict : {Verdict::kContradicted, Verdict::kUndecided}) {
    result.verdict = verdict;
    EXPECT_THAT(MeasurementOf(result, *recording, captures, {reading}),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  for (const Verdict verdict : {Verdict::kVerified, Verdict::kEquivalent}) {
    result.verdict = verdict;
    const auto measurement = MeasurementOf(result, *recording, captures, {reading});
    ASSERT_THAT(measurement, IsOk());
    EXPECT_THAT(measurement->captures, ElementsAre(Capture::Boundary(3)));
    EXPECT_EQ(measurement->expected->accept_length, 1.5);
    EXPECT_EQ(measurement->tokens_digest, recording->TokensDigest());
    EXPECT_THAT(measurement->fingerprints, ElementsAre(HasSubstr("channels")));
    // What it writes can be read by a server that has these weights.
    Complaints complaints;
    EXPECT_TRUE(
        ReadMeasuredWiring(WiringMeasurementAsJson(*measurement), "0123", complaints).has_value());
    EXPECT_THAT(complaints.list(), IsEmpty());
  }
}

}  // namespace
}  // namespace aerie
