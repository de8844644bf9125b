// Any bytes as rows of hidden states: they are refused, or are exactly so many finite numbers, and
// encode to the bytes that they came from.
//
// An input begins with 10 bytes: dtype, whether the rows are fused, and rows and width in four
// bytes each, little-endian. The rest are the rows.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace aerie;  // NOLINT: it is all that this file is about

constexpr size_t kHead = 10;

uint32_t Number(const uint8_t* bytes) {
  uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number |= uint32_t{bytes[i]} << (8 * i);
  return number;
}

void CheckRefused(const absl::Status& status) {
  const std::string reason = DetailOf(status).reason;
  AERIE_CHECK(reason == kReasonByteCount || reason == kReasonDType || reason == kReasonNonFinite)
      << status.ToString();
}

void CheckEncodesBack(const rpc::DecodedStates& decoded, const v1::HiddenStates& states) {
  Manifest manifest;
  manifest.fp8 = decoded.fp8;
  manifest.fused_width = decoded.fused ? 1 : 0;
  v1::HiddenStates again;
  rpc::EncodeHiddenStates(decoded.rows, manifest, &again);
  AERIE_CHECK(again.dtype() == states.dtype() && again.fused() == states.fused());
  if (!decoded.fp8) {
    AERIE_CHECK(again.data() == states.data());
    return;
  }
  // Others may choose other scales than we do. But what we have encoded once is kept to the bit,
  // whatever scale it gets the next time.
  const int64_t count = decoded.rows.rows(), width = decoded.rows.width();
  const auto once = rpc::DecodeHiddenStates(again, count, width);
  AERIE_CHECK(once.ok()) << once.status().ToString();
  v1::HiddenStates more;
  rpc::EncodeHiddenStates(once->rows, manifest, &more);
  const auto twice = rpc::DecodeHiddenStates(more, count, width);
  AERIE_CHECK(twice.ok()) << twice.status().ToString();
  AERIE_CHECK(twice->rows.bytes() == once->rows.bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kHead) return 0;
  v1::HiddenStates states;
  states.set_dtype(static_cast<v1::DataType>(data[0]));
  states.set_fused(data[1] % 2 == 1);
  states.set_data(data + kHead, size - kHead);
  // As a request has them: ids in a list, and a width of captures x hidden_size.
  const int64_t rows = Number(data + 2) & 0x7fffffffu;
  const int64_t width = int64_t{Number(data + 6)} * (data[1] / 2 + 1);
  const auto decoded = rpc::DecodeHiddenStates(states, rows, width);
  if (!decoded.ok()) {
    CheckRefused(decoded.status());
    return 0;
  }
  AERIE_CHECK(decoded->rows.rows() == rows);
  if (rows == 0) return 0;
  AERIE_CHECK(decoded->rows.width() == width);
  const absl::Status finite = rpc::CheckFinite(decoded->rows, 0, Wiring(), /*hidden_size=*/0);
  if (!finite.ok()) {
    CheckRefused(finite);
    return 0;
  }
  std::vector<float> values(static_cast<size_t>(rows * width));
  decoded->rows.CopyToFloat(absl::MakeSpan(values));
  for (const float value : values) AERIE_CHECK(std::isfinite(value)) << value;
  CheckEncodesBack(*decoded, states);
  return 0;
}
