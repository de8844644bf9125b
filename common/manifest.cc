#include "common/manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/error_detail.h"

namespace aerie {

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
