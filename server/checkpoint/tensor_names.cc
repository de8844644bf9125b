#include "server/checkpoint/tensor_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace aerie {
namespace {

// The first row that fits is told.
struct NameHint {
  enum class Where { kPrefix, kInside, kSuffix } where;
  absl::string_view part;
  absl::string_view meaning;
};

constexpr NameHint kHints[] = {
    {NameHint::Where::kInside, "mask_hidden", "a head that drafts in parallel (P-EAGLE)"},
    {NameHint::Where::kInside, "parallel_draft_heads", "a head that drafts in parallel"},
    {NameHint::Where::kInside, "medusa", "a head that drafts in parallel"},
    {NameHint::Where::kInside, "eh_proj", "a layer with a projection in front (eh_proj)"},
    {NameHint::Where::kInside, "enorm", "a layer with a projection in front (eh_proj)"},
    {NameHint::Where::kInside, "hnorm", "a layer with a projection in front (eh_proj)"},
    {NameHint::Where::kInside, "lora_", "an adapter that has not been merged"},
    {NameHint::Where::kInside, ".experts", "an MLP of experts"},
    {NameHint::Where::kInside, "sinks", "attention with sinks"},
    {NameHint::Where::kInside, "weight_scale_2", "4-bit weights (NVFP4)"},
    {NameHint::Where::kSuffix, ".qweight", "4-bit weights (AWQ or GPTQ)"},
    {NameHint::Where::kSuffix, ".qzeros", "4-bit weights (AWQ or GPTQ)"},
    {NameHint::Where::kSuffix, ".scales", "4-bit weights (AWQ or GPTQ)"},
    {NameHint::Where::kSuffix, ".g_idx", "4-bit weights (GPTQ)"},
    {NameHint::Where::kSuffix, "weight_packed", "packed 4-bit weights"},
    {NameHint::Where::kInside, "_scale", "quantised weights of another kind"},
    {NameHint::Where::kSuffix, ".bias", "a bias that no published head has"},
};

}  // namespace

TensorName ParseTensorName(absl::string_view stored) {
  TensorName name;
  absl::string_view rest = stored;
  if (absl::ConsumePrefix(&rest, "model.")) name.family = "model.";
  absl::string_view stem;
  for (const absl::string_view candidate : {"layers.", "midlayer."}) {
    if (absl::ConsumePrefix(&rest, candidate)) stem = candidate;
  }
  if (stem.empty()) {
    name.part = std::string(rest);
    return name;
  }
  const size_t digits =
      std::find_if_not(rest.begin(), rest.end(), absl::ascii_isdigit) - rest.begin();
  int64_t layer = 0;
  if (digits > 0 && digits < rest.size() && rest[digits] == '.' &&
      absl::SimpleAtoi(rest.substr(0, digits), &layer)) {
    name.layer = layer;
    absl::StrAppend(&name.family, stem, "N.");
    name.part = std::string(rest.substr(digits + 1));
  } else if (stem == "midlayer.") {
    name.layer = 0;
    absl::StrAppend(&name.family, stem);
    name.part = std::string(rest);
  } else {
    name.part = std::string(stored);  // "layers.x": nothing that is known
  }
  return name;
}

bool IsRedundantTensor(absl::string_view stored) {
  return absl::EndsWith(stored, "rotary_emb.inv_freq");
}

std::optional<absl::string_view> MeaningOfName(absl::string_view stored) {
  for (const NameHint& hint : kHints) {
    const bool fits = hint.where == NameHint::Where::kPrefix ? absl::StartsWith(stored, hint.part)
                      : hint.where == NameHint::Where::kSuffix
                          ? absl::EndsWith(stored, hint.part)
                          : absl::StrContains(stored, hint.part);
    if (fits) return hint.meaning;
  }
  return std::nullopt;
}

}  // namespace aerie
