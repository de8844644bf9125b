#include "server/checkpoint/quantisation.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/checkpoint/head_tensor_table.h"

namespace aerie {
namespace {

constexpr char kConfig[] = "quantization_config";
// What the values of these keys are called says which numbers the weights are.
constexpr absl::string_view kNames[] = {"quant_method", "quant_algo", "format", "fmt"};
constexpr absl::string_view kFp8Names[] = {
    "modelopt",           "fp8", "fp8_per_channel_per_token", "float-quantized", "e4m3",
    "compressed-tensors", "e5m2"};

// Whether it is fp8 with scales of tensors or rows.
bool IsPlainFp8(const ConfigView& config, std::string& name) {
  bool named_fp8 = false, known = true;
  for (const absl::string_view key : kNames) {
    const auto value = config.String(absl::StrCat(kConfig, ".", key));
    if (!value.has_value()) continue;
    absl::StrAppend(&name, name.empty() ? "" : ", ", key, " ", *value);
    const std::string lower = absl::AsciiStrToLower(*value);
    known = known &&
            std::find(std::begin(kFp8Names), std::end(kFp8Names), lower) != std::end(kFp8Names);
    named_fp8 = named_fp8 || absl::StrContains(lower, "fp8") || absl::StrContains(lower, "float") ||
                absl::StartsWith(lower, "e");
  }
  if (name.empty()) name = config.Text(kConfig);
  const std::string blocks = absl::StrCat(kConfig, ".weight_block_size");
  if (config.Has(blocks)) {
    absl::StrAppend(&name, ", scales for blocks of ", config.Text(blocks));
    return false;
  }
  return known && named_fp8;
}

}  // namespace

Sourced<std::string> CheckQuantisation(const ConfigView& config, const HeadTensors& tensors) {
  std::set<absl::string_view> types;
  std::string example;
  for (const auto& [key, tensor] : tensors.weights) {
    if (!IsFp8(tensor.type)) continue;
    types.insert(TensorTypeName(tensor.type));
    example = tensor.name;
  }
  if (config.Has(kConfig)) {
    std::string name;
    if (!IsPlainFp8(config, name)) {
      config.complaints().Add(absl::StrCat(
          config.SourceOf(kConfig), " asks for quantised weights (", name,
          ") that are not done here; expected none, or fp8 with a scale for each tensor or row; "
          "use a head that is not quantised so"));
    } else if (types.empty()) {
      config.complaints().Warn(absl::StrCat(config.SourceOf(kConfig), " speaks of fp8 (", name,
                                            ") and no weight is; expected F8_E4M3 or F8_E5M2; the "
                                            "tensors are followed"));
    }
  }
  if (types.empty()) return {"none", "the tensors' types"};
  return {absl::StrCat(absl::StrJoin(types, " and "),
                       " weights times their scales; activations are not quantised"),
          absl::StrCat("tensor ", example, config.Has(kConfig) ? " and config.json: " : "",
                       config.Has(kConfig) ? kConfig : "")};
}

}  // namespace aerie
