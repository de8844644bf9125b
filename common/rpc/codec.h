// Messages of proto/aerie/v1 <-> the values of common/. The only codec: server and client both use
// it.
//
// Encode* cannot fail. Decode* read bytes from outside and fail with INVALID_ARGUMENT and a reason;
// none of them copies hidden states, but for fp8 rows, which are unpacked: a decoded HiddenRows
// points into the message, which must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "aerie/v1/draft.pb.h"
#include "common/acceptance_record.h"
#include "common/dtype.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"
#include "common/setting.h"
#include "common/wiring.h"

namespace aerie::rpc {

// More captures than any drafter has; a longer list is refused before anything looks at it.
inline constexpr int kMaxCaptures = 256;

v1::DataType EncodeDType(DType dtype);
// INVALID_ARGUMENT, reason DTYPE_MISMATCH, for an unset or unknown type; the message names `field`.
absl::StatusOr<DType> DecodeDType(v1::DataType dtype, absl::string_view field);

void EncodeWiring(const Wiring& wiring, google::protobuf::RepeatedPtrField<v1::Capture>* captures);
// Reason MANIFEST_INVALID: empty, repeated, outside 0..num_layers, of no kind, or more than
// kMaxCaptures.
absl::StatusOr<Wiring> DecodeWiring(const google::protobuf::RepeatedPtrField<v1::Capture>& captures,
                                    int32_t num_layers);

void EncodeManifest(const Manifest& manifest, v1::Manifest* out);
// Reason MANIFEST_INVALID when it contradicts itself. Whether it fits a drafter is CheckFits()'s
// business.
absl::StatusOr<Manifest> DecodeManifest(const v1::Manifest& manifest);

// Copies the bytes into the message, once.
void EncodeHiddenStates(const HiddenRows& rows, v1::HiddenStates* out);
// As the manifest says that rows of its session travel.
void EncodeHiddenStates(const HiddenRows& rows, const Manifest& manifest, v1::HiddenStates* out);

struct DecodedStates {
  HiddenRows rows;
  bool fp8 = false, fused = false;    // how they came
  std::shared_ptr<const void> owner;  // of fp8 rows, which are unpacked into it; else null
};
// Exactly `rows` rows of `width` elements, else reason BYTE_COUNT; without rows the dtype may be
// unset.
absl::StatusOr<DecodedStates> DecodeHiddenStates(const v1::HiddenStates& states, int64_t rows,
                                                 int64_t width);
// The same of bytes that did not come in the message: `data` stands in the place of its own.
absl::StatusOr<DecodedStates> DecodeHiddenStates(const v1::HiddenStates& states,
                                                 std::string_view data, int64_t rows,
                                                 int64_t width);
// INVALID_ARGUMENT, reason NON_FINITE, that names row and capture of the first NaN or infinite
// element. Row 0 of `rows` is row `base_length` of the session. The rows must be of `wiring`,
// `hidden_size` wide each; of fused rows `hidden_size` is 0.
absl::Status CheckFinite(const HiddenRows& rows, int64_t base_length, const Wiring& wiring,
                         int64_t hidden_size);

void EncodeTokens(absl::Span<const int32_t> tokens, google::protobuf::RepeatedField<uint32_t>* out);
// Reason TOKEN_OUT_OF_RANGE unless all are in 0..vocab_size-1; the message names `field`, index and
// id.
absl::StatusOr<std::vector<int32_t>> DecodeTokens(
    const google::protobuf::RepeatedField<uint32_t>& tokens, int32_t vocab_size,
    absl::string_view field);

void EncodeAcceptanceRecord(const AcceptanceRecord& record, v1::AcceptanceRecord* out);
AcceptanceRecord DecodeAcceptanceRecord(const v1::AcceptanceRecord& record);

void EncodeSetting(const Setting& setting, v1::Setting* out);
Setting DecodeSetting(const v1::Setting& setting);

void EncodeDuration(absl::Duration duration, google::protobuf::Duration* out);
absl::Duration DecodeDuration(const google::protobuf::Duration& duration);

}  // namespace aerie::rpc
