#include "server/verify/what_if.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace aerie {
namespace {

std::string OnOff(bool value) { return value ? "on" : "off"; }

std::string BaseText(double base) { return absl::StrFormat("%.10g", base); }

// Why d2t cannot hold absolute ids; empty when it can.
std::string WhyNotAbsolute(const std::vector<int32_t>& draft_to_target) {
  for (size_t i = 1; i < draft_to_target.size(); ++i) {
    // What the file holds is the offset.
    const int64_t before = draft_to_target[i - 1] - static_cast<int64_t>(i - 1);
    const int64_t here = draft_to_target[i] - static_cast<int64_t>(i);
    if (here <= before) {
      return absl::StrCat("draft ids ", i - 1, " and ", i, " would mean target ids ", before,
                          " and ", here);
    }
  }
  return "";
}

}  // namespace

std::vector<SettingVariant> SettingVariants(const Checkpoint& checkpoint,
                                            const CheckpointOptions& options,
                                            std::optional<double> target_rope_theta) {
  const HeadSpec& spec = checkpoint.spec;
  std::vector<SettingVariant> variants;
  const auto add = [&](std::string setting, std::string declared, std::string value) -> auto& {
    variants.push_back({std::move(setting), std::move(declared), std::move(value), options, ""});
    return variants.back().options;
  };
  const auto flip = [&](const char* name, bool in_force) -> auto& {
    return add(name, OnOff(in_force), OnOff(!in_force));
  };
  const bool residual = spec.norm_before_residual.value;
  flip("norm_before_residual", residual).head.norm_before_residual = !residual;
  const bool output = spec.norm_output.value;
  flip("norm_output", output).head.norm_output = !output;

  std::set<double> bases = {10000.0, 500000.0, 1000000.0};
  if (target_rope_theta.has_value()) bases.insert(*target_rope_theta);
  bases.erase(spec.rope.theta.value);
  for (const double base : bases) {
    add("rope_theta", BaseText(spec.rope.theta.value), BaseText(base)).head.rope_theta = base;
  }
  if (spec.draft_vocab_size.value != spec.vocab_size.value) {
    add("d2t", "offsets", "absolute ids");
    SettingVariant& absolute = variants.back();
    absolute.why_not = WhyNotAbsolute(checkpoint.draft_to_target);
    if (absolute.why_not.empty()) variants.pop_back();
  }
  return variants;
}

}  // namespace aerie
