// What stands on the wire, byte for byte where a foreign client depends on it, and what a decoder
// refuses.
#include "common/rpc/codec.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Wiring WiringOf(std::vector<Capture> captures, int32_t num_layers) {
  return Wiring::Create(std::move(captures), num_layers).value();
}

// Sizes that are all different, and captures out of order, so that no swap can pass.
Manifest SmallManifest() {
  Manifest manifest;
  manifest.target_id = "tiny";
  manifest.num_layers = 30;
  manifest.hidden_size = 576;
  manifest.vocab_size = 49152;
  manifest.wiring =
      WiringOf({Capture::Boundary(27), Capture::Boundary(0), Capture::FinalNorm()}, 30);
  manifest.dtype = DType::kF16;
  manifest.drafter = "demo";
  return manifest;
}

v1::Manifest SmallManifestMessage() {
  v1::Manifest message;
  EncodeManifest(SmallManifest(), &message);
  return message;
}

TEST(ManifestCodecTest, HasTheKnownBytes) {
  EXPECT_EQ(absl::BytesToHexString(SmallManifestMessage().SerializeAsString()),
            "0a0474696e79"    // target_id "tiny"
            "101e"            // num_layers 30
            "18c004"          // hidden_size 576
            "20808003"        // vocab_size 49152
            "2a040801101b"    // boundary 27
            "2a020801"        // boundary 0
            "2a020802"        // final norm
            "3002"            // float16
            "3a0464656d6f");  // drafter "demo"
}

TEST(ManifestCodecTest, ComesBackAsItWent) {
  const absl::StatusOr<Manifest> back = DecodeManifest(SmallManifestMessage());
  ASSERT_TRUE(back.ok()) << back.status();
  const Manifest sent = SmallManifest();
  EXPECT_EQ(back->target_id, sent.target_id);
  EXPECT_EQ(back->num_layers, 30);
  EXPECT_EQ(back->hidden_size, 576);
  EXPECT_EQ(back->vocab_size, 49152);
  EXPECT_EQ(back->wiring, sent.wiring);
  EXPECT_EQ(back->dtype, DType::kF16);
  EXPECT_EQ(back->drafter, "demo");
}

struct BadManifestCase {
  std::string name;
  void (*spoil)(v1::Manifest*);
  std::string message;
};

class ManifestDecodeTest : public ::testing::TestWithParam<BadManifestCase> {};

TEST_P(ManifestDecodeTest, RefusesAManifestThatContradictsItself) {
  v1::Manifest message = SmallManifestMessage();
  GetParam().spoil(&message);
  const absl::Status status = DecodeManifest(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status).reason, kReasonManifestInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; expected "));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ManifestDecodeTest,
    ::testing::ValuesIn(std::vector<BadManifestCase>{
        {"NoCaptures", [](v1::Manifest* m) { m->clear_captures(); }, "capture list is empty"},
        {"BoundaryAboveNumLayers",
         [](v1::Manifest* m) { m->mutable_captures(0)->set_boundary(31); },
         "capture 0 is boundary 31"},
        {"BoundaryBeyondInt32",
         [](v1::Manifest* m) { m->mutable_captures(1)->set_boundary(0x80000000u); },
         "capture 1 has kind 1 and boundary 2147483648"},
        {"RepeatedCapture", [](v1::Manifest* m) { m->mutable_captures(1)->set_boundary(27); },
         "captures 0 and 1 are both boundary 27"},
        {"CaptureOfNoKind", [](v1::Manifest* m) { m->mutable_captures(2)->clear_kind(); },
         "capture 2 has kind 0"},
        {"FinalNormWithABoundary", [](v1::Manifest* m) { m->mutable_captures(2)->set_boundary(3); },
         "capture 2 has kind 2 and boundary 3"},
        {"FarTooManyCaptures",
         [](v1::Manifest* m) {
           for (int i = 0; i < kMaxCaptures; ++i) m->add_captures();
         },
         "259 captures"},
        {"NoDType", [](v1::Manifest* m) { m->clear_dtype(); }, "manifest.dtype is 0"},
        {"UnknownDType", [](v1::Manifest* m) { m->set_dtype(static_cast<v1::DataType>(9)); },
         "manifest.dtype is 9"},
        {"NoLayers", [](v1::Manifest* m) { m->set_num_layers(0); }, "manifest.num_layers is 0"},
        {"HiddenSizeBeyondInt32", [](v1::Manifest* m) { m->set_hidden_size(0x80000000u); },
         "manifest.hidden_size is 2147483648"},
        {"NoVocabulary", [](v1::Manifest* m) { m->set_vocab_size(0); }, "manifest.vocab_size is 0"},
        {"LongTargetId", [](v1::Manifest* m) { m->set_target_id(std::string(257, 'x')); },
         "manifest.target_id has 257 bytes"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(HiddenStatesCodecTest, SendsRowsAsTheyLieInMemory) {
  // Two rows of three: 1.0, -2.0, 0.5 and 3.0, -0.0, 65280.0, as bfloat16 (upper half of a
  // binary32), little-endian.
  const std::string bytes("\x80\x3f\x00\xc0\x00\x3f\x40\x40\x00\x80\x7f\x47", 12);
  const HiddenRows rows = HiddenRows::Create(DType::kBF16, 2, 3, bytes).value();
  v1::HiddenStates message;
  EncodeHiddenStates(rows, &message);
  EXPECT_EQ(absl::BytesToHexString(message.SerializeAsString()),
            "0803"  // bfloat16
            "120c"  // 12 bytes
            "803f00c0003f404000807f47");
  const HiddenRows back = DecodeHiddenStates(message, 2, 3).value().rows;
  std::vector<float> values(6);
  back.CopyToFloat(absl::MakeSpan(values));
  EXPECT_THAT(values, ElementsAre(1.0f, -2.0f, 0.5f, 3.0f, -0.0f, 65280.0f));
  EXPECT_EQ(back.bytes().data(), message.data().data()) << "decoding must not copy";
}

TEST(HiddenStatesCodecTest, RefusesAnyByteCountButTheExactOne) {
  for (const size_t bytes : {0u, 11u, 13u, 24u}) {
    v1::HiddenStates message;
    message.set_dtype(v1::DATA_TYPE_BFLOAT16);
    message.set_data(std::string(bytes, '\0'));
    const absl::Status status = DecodeHiddenStates(message, 2, 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
    EXPECT_EQ(DetailOf(status).reason, kReasonByteCount) << bytes;
  }
}

TEST(HiddenStatesCodecTest, AcceptsNoRowsWithoutADType) {
  const auto states = DecodeHiddenStates(v1::HiddenStates(), 0, 3);
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_TRUE(states->rows.empty());
}

TEST(HiddenStatesCodecTest, RefusesBytesWithoutRows) {
  v1::HiddenStates message;
  message.set_dtype(v1::DATA_TYPE_FLOAT32);
  message.set_data("abcd");
  EXPECT_EQ(DetailOf(DecodeHiddenStates(message, 0, 3).status()).reason, kReasonByteCount);
}

TEST(HiddenStatesCodecTest, RefusesRowsWithoutADType) {
  v1::HiddenStates message;
  message.set_data(std::string(6, '\0'));
  EXPECT_EQ(DetailOf(DecodeHiddenStates(message, 1, 3).status()).reason, kReasonDType);
}

TEST(HiddenStatesCodecTest, UnpacksFp8RowsIntoBytesOfTheirOwn) {
  const std::vector<float> values = {448.0f, -1.0f, 0.5f, 2.0f, 0.0f, 4.0f};
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 24);
  const HiddenRows rows = HiddenRows::Create(DType::kF32, 2, 3, bytes).value();
  Manifest manifest;
  manifest.fp8 = true;
  DecodedStates back;
  {
    v1::HiddenStates message;
    EncodeHiddenStates(rows, manifest, &message);
    EXPECT_EQ(message.dtype(), v1::DATA_TYPE_FLOAT8_E4M3FN);
    EXPECT_EQ(message.data().size(), 2u * (4 + 3));
    back = DecodeHiddenStates(message, 2, 3).value();
  }
  EXPECT_TRUE(back.fp8);
  EXPECT_FALSE(back.fused);
  ASSERT_NE(back.owner, nullptr) << "the message is gone";
  EXPECT_EQ(back.rows.dtype(), DType::kBF16);
  std::vector<float> out(6);
  back.rows.CopyToFloat(absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAreArray(values));
}

TEST(HiddenStatesCodecTest, MarksFusedRows) {
  const std::string bytes(2 * 3 * 4, '\0');
  const HiddenRows rows = HiddenRows::Create(DType::kF32, 2, 3, bytes).value();
  Manifest manifest;
  for (const int32_t width : {0, 3}) {
    manifest.fused_width = width;
    v1::HiddenStates message;
    EncodeHiddenStates(rows, manifest, &message);
    EXPECT_EQ(DecodeHiddenStates(message, 2, 3).value().fused, width > 0);
  }
}

TEST(ManifestCodecTest, TellsHowRowsTravel) {
  Manifest manifest;
  manifest.num_layers = 9;
  manifest.hidden_size = 4;
  manifest.vocab_size = 11;
  manifest.wiring = WiringOf({Capture::Boundary(7), Capture::Boundary(8)}, 9);
  manifest.dtype = DType::kF32;
  manifest.fp8 = true;
  manifest.fused_width = 5;
  manifest.fc_digest = "abcd";
  EXPECT_EQ(manifest.row_width(), 5);
  EXPECT_EQ(manifest.wire_row_bytes(), 9);
  v1::Manifest message;
  EncodeManifest(manifest, &message);
  const Manifest back = DecodeManifest(message).value();
  EXPECT_TRUE(back.fp8);
  EXPECT_EQ(back.dtype, DType::kBF16) << "what they are unpacked to";
  EXPECT_EQ(back.fused_width, 5);
  EXPECT_EQ(back.fc_digest, "abcd");
  message.mutable_fused()->set_width(0);
  EXPECT_EQ(DetailOf(DecodeManifest(message).status()).reason, kReasonManifestInvalid);
  message.mutable_fused()->set_width(5);
  message.mutable_fused()->clear_fc_digest();
  EXPECT_EQ(DetailOf(DecodeManifest(message).status()).reason, kReasonManifestInvalid);
}

TEST(CheckFiniteTest, NamesRowAndElementOfFusedRows) {
  const std::vector<float> values = {1.0f, 2.0f, 3.0f, std::numeric_limits<float>::infinity()};
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 16);
  const HiddenRows rows = HiddenRows::Create(DType::kF32, 2, 2, bytes).value();
  const absl::Status status = CheckFinite(rows, 5, Wiring(), 0);
  EXPECT_EQ(DetailOf(status).reason, kReasonNonFinite);
  EXPECT_THAT(std::string(status.message()), HasSubstr("row 1 (row 6 of the sequence)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("behind fc, element 1"));
}

TEST(CheckFiniteTest, NamesRowAndCaptureOfTheFirstBadValue) {
  const Wiring wiring = WiringOf({Capture::Boundary(7), Capture::FinalNorm()}, 9);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(3 * 4, 0.25f);  // three rows, two captures of width 2
    values[1 * 4 + 1] = bad;
    values[2 * 4 + 2] = bad;
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 48);
    const HiddenRows rows = HiddenRows::Create(DType::kF32, 3, 4, bytes).value();
    const absl::Status status = CheckFinite(rows, 100, wiring, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailOf(status).reason, kReasonNonFinite);
    EXPECT_THAT(std::string(status.message()), HasSubstr("row 1 (row 101 of the sequence)"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("boundary 7, element 1"));

    const absl::Status last = CheckFinite(rows.Slice(2, 1), 102, wiring, 2);
    EXPECT_THAT(std::string(last.message()), HasSubstr("final norm, element 0"));
    EXPECT_TRUE(CheckFinite(rows.Slice(0, 1), 100, wiring, 2).ok());
  }
}

TEST(TokensCodecTest, NamesIndexAndIdOfTheFirstOneOutsideTheVocabulary) {
  google::protobuf::RepeatedField<uint32_t> tokens;
  EncodeTokens({0, 9, 10}, &tokens);
  EXPECT_THAT(DecodeTokens(tokens, 11, "token_ids").value(), ElementsAre(0, 9, 10));
  const absl::Status status = DecodeTokens(tokens, 10, "token_ids").status();
  EXPECT_EQ(DetailOf(status).reason, kReasonTokenOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token_ids[2] is 10; expected 0..9"));
  tokens.Set(1, 0xffffffffu);  // -1 as engines pad
  EXPECT_THAT(std::string(DecodeTokens(tokens, 11, "token_ids").status().message()),
              HasSubstr("token_ids[1] is 4294967295; expected 0..10"));
}

TEST(AcceptanceRecordCodecTest, ComesBackAsItWent) {
  AcceptanceRecord record;
  record.acceptance_histogram = {3, 0, 2};
  record.depth_histogram = {0, 1, 4};
  record.accepted_draft_tokens = 4;
  record.draft_tokens = 15;
  record.spec_steps = 5;
  record.spec_tokens = 6;
  record.completion_tokens = 9;
  record.unreported_drafts = 1;
  record.per_step_accepted = {0, 2};
  record.per_step_drafted = {5, 300};
  v1::AcceptanceRecord message;
  EncodeAcceptanceRecord(record, &message);
  EXPECT_EQ(absl::BytesToHexString(message.SerializeAsString()),
            "0a03030002"
            "1004"
            "180f"
            "2005"
            "2806"
            "3009"
            "3801"
            "4203000104"
            "4a020002"
            "520305ac02"
            "5a056165726965");
  EXPECT_EQ(DecodeAcceptanceRecord(message), record);
}

TEST(DTypeCodecTest, ComesBackAsItWent) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(DecodeDType(EncodeDType(dtype), "dtype").value(), dtype);
  }
  EXPECT_EQ(EncodeDType(DType::kF32), v1::DATA_TYPE_FLOAT32);
  EXPECT_EQ(EncodeDType(DType::kF16), v1::DATA_TYPE_FLOAT16);
  EXPECT_EQ(EncodeDType(DType::kBF16), v1::DATA_TYPE_BFLOAT16);
}

TEST(SettingCodecTest, ComesBackAsItWent) {
  const Setting setting{"rope_theta", "10000", "config.json: rope_theta"};
  v1::Setting message;
  EncodeSetting(setting, &message);
  EXPECT_EQ(DecodeSetting(message), setting);
}

TEST(DurationCodecTest, KeepsNanosecondsAndBothSigns) {
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Seconds(90) + absl::Nanoseconds(7),
        -absl::Milliseconds(1500)}) {
    google::protobuf::Duration message;
    EncodeDuration(duration, &message);
    EXPECT_EQ(DecodeDuration(message), duration);
    // protobuf demands equal signs of the two parts.
    EXPECT_GE(message.seconds() * int64_t{message.nanos()}, 0);
  }
}

}  // namespace
}  // namespace aerie::rpc
