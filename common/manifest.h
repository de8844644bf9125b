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
  DType dtype = DType::kBF16;
  std::string drafter;  // empty: the only one

  // Elements of one aux hidden state.
  int64_t row_width() const { return int64_t{hidden_size} * wiring.size(); }
};

// What a drafter expects of a manifest.
struct ManifestRequirement {
  std::string drafter;
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
  Wiring wiring;
};

// FAILED_PRECONDITION, reason MANIFEST_MISMATCH, with one FieldMismatch for every field that
// differs.
absl::Status CheckFits(const Manifest& manifest, const ManifestRequirement& requirement);

}  // namespace aerie
