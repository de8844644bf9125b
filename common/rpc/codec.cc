#include "common/rpc/codec.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/float8.h"
#include "common/status_macros.h"

namespace aerie::rpc {
namespace {

constexpr uint32_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxTargetIdBytes = 256;
constexpr size_t kMaxDigestBytes = 128;

void EncodeCounts(absl::Span<const int32_t> counts,
                  google::protobuf::RepeatedField<uint32_t>* out) {
  out->Clear();
  for (const int32_t count : counts) out->Add(static_cast<uint32_t>(count));
}

absl::Status ManifestInvalid(absl::string_view message) {
  return WithReason(absl::InvalidArgumentError(message), kReasonManifestInvalid);
}

// A size of the manifest: 1..int32 max.
absl::StatusOr<int32_t> DecodeSize(uint32_t value, absl::string_view field) {
  if (value == 0 || value > kInt32Max) {
    return ManifestInvalid(absl::StrCat("manifest.", field, " is ", value, "; expected 1..",
                                        kInt32Max, "; send the size that the target's config has"));
  }
  return static_cast<int32_t>(value);
}

}  // namespace

v1::DataType EncodeDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return v1::DATA_TYPE_FLOAT32;
    case DType::kF16:
      return v1::DATA_TYPE_FLOAT16;
    case DType::kBF16:
      return v1::DATA_TYPE_BFLOAT16;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

absl::StatusOr<DType> DecodeDType(v1::DataType dtype, absl::string_view field) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT32:
      return DType::kF32;
    case v1::DATA_TYPE_FLOAT16:
      return DType::kF16;
    case v1::DATA_TYPE_BFLOAT16:
      return DType::kBF16;
    default:
      return WithReason(absl::InvalidArgumentError(absl::StrCat(
                            field, " is ", static_cast<int>(dtype),
                            "; expected DATA_TYPE_FLOAT32, DATA_TYPE_FLOAT16, DATA_TYPE_BFLOAT16 "
                            "or DATA_TYPE_FLOAT8_E4M3FN; name the type of the bytes that are "
                            "sent")),
                        kReasonDType);
  }
}

void EncodeWiring(const Wiring& wiring, google::protobuf::RepeatedPtrField<v1::Capture>* captures) {
  captures->Clear();
  for (const Capture& capture : wiring.captures()) {
    v1::Capture* out = captures->Add();
    if (capture.kind == Capture::Kind::kFinalNorm) {
      out->set_kind(v1::CAPTURE_KIND_FINAL_NORM);
    } else {
      out->set_kind(v1::CAPTURE_KIND_BOUNDARY);
      out->set_boundary(static_cast<uint32_t>(capture.boundary));
    }
  }
}

absl::StatusOr<Wiring> DecodeWiring(const google::protobuf::RepeatedPtrField<v1::Capture>& captures,
                                    int32_t num_layers) {
  if (captures.size() > kMaxCaptures) {
    return ManifestInvalid(absl::StrCat("the manifest has ", captures.size(),
                                        " captures; expected at most ", kMaxCaptures,
                                        "; send only those that the drafter was trained on"));
  }
  std::vector<Capture> list;
  list.reserve(static_cast<size_t>(captures.size()));
  for (const v1::Capture& capture : captures) {
    if (capture.kind() == v1::CAPTURE_KIND_FINAL_NORM && capture.boundary() == 0) {
      list.push_back(Capture::FinalNorm());
    } else if (capture.kind() == v1::CAPTURE_KIND_BOUNDARY && capture.boundary() <= kInt32Max) {
      list.push_back(Capture::Boundary(static_cast<int32_t>(capture.boundary())));
    } else {
      return ManifestInvalid(absl::StrCat(
          "capture ", list.size(), " has kind ", static_cast<int>(capture.kind()), " and boundary ",
          capture.boundary(), "; expected CAPTURE_KIND_BOUNDARY with a boundary in 0..", num_layers,
          ", or CAPTURE_KIND_FINAL_NORM without one; name the place of every capture"));
    }
  }
  absl::StatusOr<Wiring> wiring = Wiring::Create(std::move(list), num_layers);
  if (!wiring.ok()) return ManifestInvalid(wiring.status().message());
  return wiring;
}

void EncodeManifest(const Manifest& manifest, v1::Manifest* out) {
  out->set_target_id(manifest.target_id);
  out->set_num_layers(static_cast<uint32_t>(manifest.num_layers));
  out->set_hidden_size(static_cast<uint32_t>(manifest.hidden_size));
  out->set_vocab_size(static_cast<uint32_t>(manifest.vocab_size));
  EncodeWiring(manifest.wiring, out->mutable_captures());
  out->set_dtype(manifest.fp8 ? v1::DATA_TYPE_FLOAT8_E4M3FN : EncodeDType(manifest.dtype));
  out->set_drafter(manifest.drafter);
  if (manifest.fused()) {
    out->mutable_fused()->set_width(static_cast<uint32_t>(manifest.fused_width));
    out->mutable_fused()->set_fc_digest(manifest.fc_digest);
  }
}

absl::StatusOr<Manifest> DecodeManifest(const v1::Manifest& manifest) {
  if (manifest.target_id().size() > kMaxTargetIdBytes) {
    return ManifestInvalid(absl::StrCat("manifest.target_id has ", manifest.target_id().size(),
                                        " bytes; expected at most ", kMaxTargetIdBytes,
                                        "; shorten the name"));
  }
  Manifest out;
  out.target_id = manifest.target_id();
  AERIE_ASSIGN_OR_RETURN(out.num_layers, DecodeSize(manifest.num_layers(), "num_layers"));
  AERIE_ASSIGN_OR_RETURN(out.hidden_size, DecodeSize(manifest.hidden_size(), "hidden_size"));
  AERIE_ASSIGN_OR_RETURN(out.vocab_size, DecodeSize(manifest.vocab_size(), "vocab_size"));
  AERIE_ASSIGN_OR_RETURN(out.wiring, DecodeWiring(manifest.captures(), out.num_layers));
  out.fp8 = manifest.dtype() == v1::DATA_TYPE_FLOAT8_E4M3FN;
  if (!out.fp8) {
    const absl::StatusOr<DType> dtype = DecodeDType(manifest.dtype(), "manifest.dtype");
    if (!dtype.ok()) return ManifestInvalid(dtype.status().message());
    out.dtype = *dtype;
  }
  out.drafter = manifest.drafter();
  if (manifest.has_fused()) {
    AERIE_ASSIGN_OR_RETURN(out.fused_width, DecodeSize(manifest.fused().width(), "fused.width"));
    out.fc_digest = manifest.fused().fc_digest();
    if (out.fc_digest.empty() || out.fc_digest.size() > kMaxDigestBytes) {
      return ManifestInvalid(absl::StrCat("manifest.fused.fc_digest has ", out.fc_digest.size(),
                                          " bytes; expected 1..", kMaxDigestBytes,
                                          "; send the digest of the fc that the worker applies"));
    }
  }
  return out;
}

void EncodeHiddenStates(const HiddenRows& rows, v1::HiddenStates* out) {
  out->set_dtype(EncodeDType(rows.dtype()));
  out->set_data(rows.bytes().data(), rows.bytes().size());
}

void EncodeHiddenStates(const HiddenRows& rows, const Manifest& manifest, v1::HiddenStates* out) {
  if (manifest.fp8) {
    out->set_dtype(v1::DATA_TYPE_FLOAT8_E4M3FN);
    out->set_data(EncodeFp8(rows));
  } else {
    EncodeHiddenStates(rows, out);
  }
  out->set_fused(manifest.fused());
}

absl::StatusOr<DecodedStates> DecodeHiddenStates(const v1::HiddenStates& states, int64_t rows,
                                                 int64_t width) {
  return DecodeHiddenStates(states, states.data(), rows, width);
}

absl::StatusOr<DecodedStates> DecodeHiddenStates(const v1::HiddenStates& states,
                                                 std::string_view data, int64_t rows,
                                                 int64_t width) {
  DecodedStates out;
  if (rows == 0 && data.empty()) return out;
  out.fused = states.fused();
  if (states.dtype() == v1::DATA_TYPE_FLOAT8_E4M3FN) {
    out.fp8 = true;
    AERIE_ASSIGN_OR_RETURN(std::string unpacked, DecodeFp8(data, rows, width));
    const auto owner = std::make_shared<const std::string>(std::move(unpacked));
    AERIE_ASSIGN_OR_RETURN(out.rows, HiddenRows::Create(DType::kBF16, rows, width, *owner));
    out.owner = owner;
    return out;
  }
  AERIE_ASSIGN_OR_RETURN(const DType dtype, DecodeDType(states.dtype(), "hidden_states.dtype"));
  AERIE_ASSIGN_OR_RETURN(out.rows, HiddenRows::Create(dtype, rows, width, data));
  return out;
}

absl::Status CheckFinite(const HiddenRows& rows, int64_t base_length, const Wiring& wiring,
                         int64_t hidden_size) {
  const std::optional<HiddenRows::Location> bad = rows.FindNonFinite();
  if (!bad) return absl::OkStatus();
  if (hidden_size == 0) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "hidden_states row ", bad->row, " (row ", base_length + bad->row,
            " of the sequence) holds a NaN or infinite value behind fc, element ", bad->column,
            "; expected finite values; check the captures, and fc's product for overflow")),
        kReasonNonFinite);
  }
  const Capture& capture = wiring.captures().at(static_cast<size_t>(bad->column / hidden_size));
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          "hidden_states row ", bad->row, " (row ", base_length + bad->row,
          " of the sequence) holds a NaN or infinite value in ", capture.ToString(), ", element ",
          bad->column % hidden_size,
          "; expected finite numbers; look for an overflow in the target (float16?) or a wrong "
          "dtype, and send the row again")),
      kReasonNonFinite);
}

void EncodeTokens(absl::Span<const int32_t> tokens,
                  google::protobuf::RepeatedField<uint32_t>* out) {
  out->Clear();
  out->Reserve(static_cast<int>(tokens.size()));
  for (const int32_t token : tokens) out->AddAlreadyReserved(static_cast<uint32_t>(token));
}

absl::StatusOr<std::vector<int32_t>> DecodeTokens(
    const google::protobuf::RepeatedField<uint32_t>& tokens, int32_t vocab_size,
    absl::string_view field) {
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(tokens.size()));
  for (const uint32_t token : tokens) {
    if (token >= static_cast<uint32_t>(vocab_size)) {
      return WithReason(absl::InvalidArgumentError(absl::StrCat(
                            field, "[", out.size(), "] is ", token, "; expected 0..",
                            vocab_size - 1, "; send ids of the target's vocabulary, no padding")),
                        kReasonTokenOutOfRange);
    }
    out.push_back(static_cast<int32_t>(token));
  }
  return out;
}

void EncodeAcceptanceRecord(const AcceptanceRecord& record, v1::AcceptanceRecord* out) {
  out->clear_acceptance_histogram();
  for (const int64_t count : record.acceptance_histogram) {
    out->add_acceptance_histogram(static_cast<uint64_t>(count));
  }
  out->clear_depth_histogram();
  for (const int64_t count : record.depth_histogram) {
    out->add_depth_histogram(static_cast<uint64_t>(count));
  }
  out->set_num_accepted_draft_tokens(static_cast<uint64_t>(record.accepted_draft_tokens));
  out->set_num_draft_tokens(static_cast<uint64_t>(record.draft_tokens));
  out->set_num_spec_steps(static_cast<uint64_t>(record.spec_steps));
  out->set_num_spec_tokens(static_cast<uint32_t>(record.spec_tokens));
  out->set_completion_tokens(static_cast<uint64_t>(record.completion_tokens));
  out->set_unreported_drafts(static_cast<uint64_t>(record.unreported_drafts));
  EncodeCounts(record.per_step_accepted, out->mutable_per_step_accepted());
  EncodeCounts(record.per_step_drafted, out->mutable_per_step_drafted());
  out->set_engine(kEngineName);
}

AcceptanceRecord DecodeAcceptanceRecord(const v1::AcceptanceRecord& record) {
  AcceptanceRecord out;
  for (const uint64_t count : record.acceptance_histogram()) {
    out.acceptance_histogram.push_back(static_cast<int64_t>(count));
  }
  for (const uint64_t count : record.depth_histogram()) {
    out.depth_histogram.push_back(static_cast<int64_t>(count));
  }
  out.accepted_draft_tokens = static_cast<int64_t>(record.num_accepted_draft_tokens());
  out.draft_tokens = static_cast<int64_t>(record.num_draft_tokens());
  out.spec_steps = static_cast<int64_t>(record.num_spec_steps());
  out.spec_tokens = static_cast<int32_t>(record.num_spec_tokens());
  out.completion_tokens = static_cast<int64_t>(record.completion_tokens());
  out.unreported_drafts = static_cast<int64_t>(record.unreported_drafts());
  out.per_step_accepted.assign(record.per_step_accepted().begin(),
                               record.per_step_accepted().end());
  out.per_step_drafted.assign(record.per_step_drafted().begin(), record.per_step_drafted().end());
  return out;
}

void EncodeSetting(const Setting& setting, v1::Setting* out) {
  out->set_name(setting.name);
  out->set_value(setting.value);
  out->set_source(setting.source);
}

Setting DecodeSetting(const v1::Setting& setting) {
  return {setting.name(), setting.value(), setting.source()};
}

void EncodeDuration(absl::Duration duration, google::protobuf::Duration* out) {
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &duration);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

absl::Duration DecodeDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace aerie::rpc
