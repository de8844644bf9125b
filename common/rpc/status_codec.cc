#include "common/rpc/status_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace aerie::rpc {
namespace {

// The message travels three times (grpc-message, google.rpc.Status, ErrorDetail) and a mismatch
// twice; with these limits an error stays below the 8 KiB that trailers may have.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxMismatchBytes = 96;
constexpr size_t kMaxMismatches = 6;

// At most `limit` bytes and no half of a UTF-8 character, since proto3 strings must be UTF-8.
std::string Cut(absl::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

absl::StatusCode CodeFromInt(int code) {
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
}

// The request field that a reason is about; empty when it is about none.
absl::string_view FieldOf(absl::string_view reason) {
  struct Entry {
    absl::string_view reason, field;
  };
  // Not constexpr: GCC with -fsanitize=undefined refuses the comparison with null in string_view.
  static const Entry kFields[] = {
      {kReasonBaseLengthAhead, "base_length"},
      {kReasonByteCount, "hidden_states.data"},
      {kReasonDType, "hidden_states.dtype"},
      {kReasonKOutOfRange, "k"},
      {kReasonKWithoutRows, "k"},
      {kReasonManifestInvalid, "manifest"},
      {kReasonNonFinite, "hidden_states.data"},
      {kReasonSeqBehind, "seq"},
      {kReasonSessionUnknown, "session_id"},
      {kReasonTokenOutOfRange, "token_ids"},
      {kReasonTooManyRows, "token_ids"},
  };
  for (const Entry& entry : kFields) {
    if (entry.reason == reason) return entry.field;
  }
  return {};
}

void AddBadRequest(const v1::ErrorDetail& detail, google::rpc::Status* out) {
  const absl::string_view field = FieldOf(detail.reason());
  if (field.empty()) return;
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(detail.reason());
  out->add_details()->PackFrom(bad);
}

void AddPreconditionFailure(const v1::ErrorDetail& detail, google::rpc::Status* out) {
  google::rpc::PreconditionFailure failure;
  for (const v1::FieldMismatch& mismatch : detail.mismatches()) {
    auto* violation = failure.add_violations();
    violation->set_type(detail.reason());
    violation->set_subject(mismatch.field());
    violation->set_description(
        absl::StrCat("expected ", mismatch.expected(), ", received ", mismatch.received()));
  }
  if (detail.has_resend_from()) {
    auto* violation = failure.add_violations();
    violation->set_type(detail.reason());
    violation->set_subject("base_length");
    violation->set_description(absl::StrCat("resend from row ", detail.resend_from()));
  }
  if (failure.violations_size() > 0) out->add_details()->PackFrom(failure);
}

}  // namespace

v1::ErrorDetail ToErrorDetail(const absl::Status& status) {
  AERIE_CHECK(!status.ok()) << "only a failure has a detail";
  const ErrorDetail detail = DetailOf(status);
  v1::ErrorDetail out;
  out.set_code(static_cast<int>(status.code()));
  out.set_message(Cut(status.message(), kMaxMessageBytes));
  out.set_reason(detail.reason);
  if (detail.resend_from) out.set_resend_from(static_cast<uint32_t>(*detail.resend_from));
  if (detail.retry_after) EncodeDuration(*detail.retry_after, out.mutable_retry_after());
  for (size_t i = 0; i < std::min(detail.mismatches.size(), kMaxMismatches); ++i) {
    const FieldMismatch& mismatch = detail.mismatches[i];
    v1::FieldMismatch* field = out.add_mismatches();
    field->set_field(Cut(mismatch.field, kMaxMismatchBytes));
    field->set_expected(Cut(mismatch.expected, kMaxMismatchBytes));
    field->set_received(Cut(mismatch.received, kMaxMismatchBytes));
  }
  return out;
}

absl::Status FromErrorDetail(const v1::ErrorDetail& detail) {
  ErrorDetail out;
  out.reason = detail.reason();
  if (detail.has_resend_from()) out.resend_from = detail.resend_from();
  if (detail.has_retry_after()) out.retry_after = DecodeDuration(detail.retry_after());
  for (const v1::FieldMismatch& mismatch : detail.mismatches()) {
    out.mismatches.push_back({mismatch.field(), mismatch.expected(), mismatch.received()});
  }
  return WithDetail(absl::Status(CodeFromInt(detail.code()), detail.message()), out);
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const v1::ErrorDetail detail = ToErrorDetail(status);
  google::rpc::Status out;
  out.set_code(detail.code());
  out.set_message(detail.message());
  out.add_details()->PackFrom(detail);
  if (!detail.reason().empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(detail.reason());
    info.set_domain(kErrorDomain);
    if (detail.has_resend_from()) {
      (*info.mutable_metadata())["resend_from"] = absl::StrCat(detail.resend_from());
    }
    out.add_details()->PackFrom(info);
  }
  if (status.code() == absl::StatusCode::kInvalidArgument) AddBadRequest(detail, &out);
  if (status.code() == absl::StatusCode::kFailedPrecondition) AddPreconditionFailure(detail, &out);
  if (detail.has_retry_after()) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() = detail.retry_after();
    out.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), detail.message(),
                      out.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status out(CodeFromInt(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return out;
  for (const google::protobuf::Any& any : details.details()) {
    v1::ErrorDetail detail;
    if (any.Is<v1::ErrorDetail>() && any.UnpackTo(&detail)) {
      // Code and message of the call itself stand; a proxy may have changed them with reason.
      detail.set_code(static_cast<int>(out.code()));
      detail.set_message(status.error_message());
      return FromErrorDetail(detail);
    }
  }
  return out;
}

}  // namespace aerie::rpc
