#include "common/manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/error_detail.h"
#include "common/float8.h"

namespace aerie {

int64_t Manifest::wire_row_bytes() const {
  return fp8 ? Fp8RowBytes(row_width()) : row_width() * static_cast<int64_t>(DTypeSize(dtype));
}

absl::Status CheckFits(const Manifest& manifest, const ManifestRequirement& requirement) {
  std::vector<FieldMismatch> mismatches;
  const auto compare = [&](const char* field, const std::string& expected,
                           const std::string& received) {
    if (expected != received) mismatches.push_back({field, expected, received});
  };
  if (!manifest.drafter.empty()) compare("drafter", requirement.drafter, manifest.drafter);
  compare("num_layers", absl::StrCat(requirement.num_layers), absl::StrCat(manifest.num_layers));
  compare("hidden_size", absl::StrCat(requirement.hidden_size), absl::StrCat(manifest.hidden_size));
  compare("vocab_size", absl::StrCat(requirement.vocab_size), absl::StrCat(manifest.vocab_size));
  compare("captures", requirement.wiring.ToString(), manifest.wiring.ToString());
  if (manifest.fused()) {
    const bool taken = !requirement.fc_digest.empty();
    compare("fused.width", absl::StrCat(requirement.fused_width),
            absl::StrCat(manifest.fused_width));
    compare("fused.fc_digest", taken ? requirement.fc_digest : "no fused rows, of this head",
            manifest.fc_digest);
  }
  if (mismatches.empty()) return absl::OkStatus();

  const std::string list =
      absl::StrJoin(mismatches, "; ", [](std::string* out, const FieldMismatch& m) {
        absl::StrAppend(out, m.field, " is ", m.received, ", expected ", m.expected);
      });
  ErrorDetail detail;
  detail.reason = kReasonManifestMismatch;
  detail.mismatches = std::move(mismatches);
  return WithDetail(absl::FailedPreconditionError(absl::StrCat(
                        "the manifest does not fit drafter \"", requirement.drafter, "\": ", list,
                        "; make the worker capture what the drafter was trained on, or load the "
                        "drafter of this target")),
                    detail);
}

}  // namespace aerie
