// The norms of a head that not every head has, and what is fed back.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/head_parts.h"

namespace aerie {
namespace {

// The value of whichever key is there; complains when two differ.
std::optional<Sourced<bool>> Stated(const HeadFiles& files, const std::vector<std::string>& keys) {
  std::optional<Sourced<bool>> found;
  for (const std::string& key : keys) {
    const auto value = files.config.Bool(key);
    if (!value.has_value()) continue;
    if (!found.has_value()) {
      found = {*value, files.config.SourceOf(key)};
    } else if (found->value != *value) {
      files.complaints().Add(absl::StrCat(
          files.config.SourceOf(key), " is ", files.config.Text(key), " but ", found->source,
          " is not; expected the same; remove the one with which the head was not trained"));
    }
  }
  return found;
}

Sourced<bool> ReadNormBeforeResidual(const HeadFiles& files) {
  if (files.options.norm_before_residual.has_value()) {
    return {*files.options.norm_before_residual, "flag --norm-before-residual"};
  }
  if (const auto stated = Stated(files, {"norm_before_residual"})) return *stated;
  if (files.layout.norm_before_residual.has_value()) {
    return {*files.layout.norm_before_residual,
            absl::StrCat("default of ", files.layout.name.value)};
  }
  files.complaints().Add(absl::StrCat(
      "config.json of a ", files.layout.name.value,
      " head has no norm_before_residual, which its package reads as false and vLLM as true; "
      "expected it to be stated; ask with which the head was trained and set "
      "--norm-before-residual=on or --norm-before-residual=off"));
  return {false, "unknown"};
}

Sourced<bool> ReadNormOutput(const HeadFiles& files) {
  if (files.options.norm_output.has_value()) {
    return {*files.options.norm_output, "flag --norm-output"};
  }
  const auto stated = Stated(files, {"norm_output", "eagle_config.return_hidden_post_norm"});
  if (!stated.has_value()) {
    return {false, absl::StrCat("default of ", files.layout.name.value)};
  }
  if (!stated->value || files.layout.name.value != "SpecForge") return *stated;
  files.complaints().Warn(absl::StrCat(
      stated->source,
      " is true, which feeds the normed output back; expected a head that was trained so, but "
      "SpecForge before September 2026 wrote it of heads that feed the plain one back; if later "
      "tokens are accepted rarely, try --norm-output=off"));
  return {true, absl::StrCat(stated->source, ", read as feeding the normed output back")};
}

}  // namespace

Sourced<bool> PartFromTensor(const HeadFiles& files, const TensorKey& tensor,
                             std::initializer_list<std::string> keys) {
  const auto found = files.tensors.stored.find(tensor);
  const bool present = found != files.tensors.stored.end();
  const auto stated = Stated(files, keys);
  if (stated.has_value() && stated->value != present) {
    files.complaints().Add(absl::StrCat(
        stated->source, " is ", stated->value ? "true" : "false", " but the weights hold ",
        present ? "" : "no ", present ? found->second : PlainName(tensor),
        "; expected them to agree; check that these files belong together"));
  }
  if (present) return {true, absl::StrCat("tensor ", found->second)};
  return {false,
          stated.has_value() ? stated->source : absl::StrCat("no tensor ", PlainName(tensor))};
}

void ReadNorms(const HeadFiles& files, HeadSpec& spec) {
  spec.use_aux_hidden_state = {true, absl::StrCat("default of ", files.layout.name.value)};
  if (const auto stated =
          Stated(files, {"use_aux_hidden_state", "eagle_config.use_aux_hidden_state"})) {
    spec.use_aux_hidden_state = *stated;
  }
  spec.norm_before_residual = ReadNormBeforeResidual(files);
  spec.norm_output = ReadNormOutput(files);
  spec.norm_before_fc = PartFromTensor(files, HeadTensor::kFcInputNorm, {"norm_before_fc"});
  spec.fc_norm = PartFromTensor(files, HeadTensor::kFcNorm, {"fc_norm", "use_aux_norm"});
  if (spec.norm_before_fc.value && spec.fc_norm.value) {
    files.complaints().Add(absl::StrCat(
        "the head has both norm_before_fc (", spec.norm_before_fc.source, ") and fc_norm (",
        spec.fc_norm.source,
        "); expected one of them, since no head is trained with both; export it again"));
  }
}

}  // namespace aerie
