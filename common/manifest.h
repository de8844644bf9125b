// What a worker declares about its target and its captures, and whether it fits a drafter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/dtype.h"
#include "common/wiring.h"

namespace aerie {

struct Manifest {
  std::string target_id;
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
  Wiring wiring;
  DType dtype = DType::kBF16;  // of rows at both ends
  std::string drafter;         // empty: the only one
  // Rows travel as float8_e4m3fn with a scale each (common/float8.h); the drafter sees bfloat16.
  bool fp8 = false;
  // The worker applies the drafter's fc. Elements of a row behind it; 0: rows are captures.
  int32_t fused_width = 0;
  std::string fc_digest;  // of the fc that the worker applies

  bool fused() const { return fused_width > 0; }
  // Elements of one row: of an aux hidden state, or of what fc makes of it.
  int64_t row_width() const {
    return fused() ? int64_t{fused_width} : int64_t{hidden_size} * wiring.size();
  }
  // Bytes of one row on the wire.
  int64_t wire_row_bytes() const;
};

// What a drafter expects of a manifest.
struct ManifestRequirement {
  std::string drafter;
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
  Wiring wiring;
  int32_t fused_width = 0;
  std::string fc_digest;  // empty: fused rows are not taken
};

// FAILED_PRECONDITION, reason MANIFEST_MISMATCH, with one FieldMismatch for every field that
// differs.
absl::Status CheckFits(const Manifest& manifest, const ManifestRequirement& requirement);

}  // namespace aerie
