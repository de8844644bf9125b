#include "server/checkpoint/head_tensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/safetensors/json_check.h"
#include "server/checkpoint/head_tensor_table.h"
#include "server/checkpoint/tensor_names.h"

namespace aerie {
namespace {

// Past any head that is or will be; keeps a number in a name from standing for millions of layers.
constexpr int64_t kMaxIndex = 255;

constexpr std::pair<absl::string_view, absl::string_view> kOlderCaptureNorms[] = {
    {"aux_norm_low.", "fc_norm.0."},
    {"aux_norm_mid.", "fc_norm.1."},
    {"aux_norm_high.", "fc_norm.2."}};

// Of a name that is no layer's: "fc_norm.1.weight" -> capture 1 and "weight".
std::optional<std::pair<int64_t, std::string>> SplitCaptureNorm(std::string part) {
  for (const auto& [older, newer] : kOlderCaptureNorms) {
    if (absl::StartsWith(part, older)) part = absl::StrCat(newer, part.substr(older.size()));
  }
  absl::string_view rest = part;
  if (!absl::ConsumePrefix(&rest, "fc_norm.")) return std::nullopt;
  const size_t dot = rest.find('.');
  int64_t index = 0;
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, dot), &index) ||
      index < 0 || index > kMaxIndex) {
    return std::nullopt;
  }
  return std::pair(index, std::string(rest.substr(dot + 1)));
}

std::optional<TensorKey> KeyOf(const TensorName& name) {
  TensorPlace place = TensorPlace::kHead;
  int64_t index = 0;
  std::string part = name.part;
  if (name.layer.has_value()) {
    place = TensorPlace::kLayer;
    index = *name.layer;
    if (index > kMaxIndex) return std::nullopt;
  } else if (const auto norm = SplitCaptureNorm(part)) {
    place = TensorPlace::kCapture;
    index = norm->first;
    part = norm->second;
  }
  for (const TensorRule& rule : TensorRules()) {
    if (rule.place != place || rule.part != part) continue;
    // Behind the first layer two names stand for the one norm in front of the attention.
    const bool later_norm = rule.role == HeadTensor::kHiddenNorm && index > 0;
    return TensorKey(later_norm ? HeadTensor::kInputNorm : rule.role, static_cast<int32_t>(index));
  }
  return std::nullopt;
}

// Puts one file's tensors in their places.
class Sorter {
 public:
  Sorter(absl::Span<const TensorSpan> tensors, Complaints& complaints)
      : tensors_(tensors), complaints_(complaints) {}

  HeadTensors Sort() {
    for (const TensorSpan& tensor : tensors_) {
      if (!IsRedundantTensor(tensor.name)) Place(tensor);
    }
    CheckFamilies();
    CheckScales();
    CountLayers();
    return std::move(sorted_);
  }

 private:
  void Place(const TensorSpan& tensor) {
    TensorName name = ParseTensorName(tensor.name);
    // The scale of an fp8 weight stands under the name of the weight.
    bool is_scale = false;
    for (const absl::string_view suffix : {"weight_scale_inv", "weight_scale"}) {
      if (!is_scale && absl::EndsWith(name.part, suffix)) {
        is_scale = true;
        name.part.resize(name.part.size() - suffix.size());
        name.part += "weight";
      }
    }
    if (absl::EndsWith(name.part, ".input_scale")) {
      TensorName weight = name;
      weight.part = absl::StrCat(absl::StripSuffix(name.part, "input_scale"), "weight");
      // Scales of activations, which are not quantised here.
      const auto key = KeyOf(weight);
      if (key.has_value() && RuleOf(key->role).kind == TensorKind::kMatrix) return;
    }
    const auto key = KeyOf(name);
    if (!key.has_value() || (is_scale && RuleOf(key->role).kind != TensorKind::kMatrix)) {
      ComplainOfUnknown(tensor);
      return;
    }
    NoteFamily(name, *key, tensor.name);
    if (is_scale) {
      PlaceScale(*key, tensor);
      return;
    }
    const TensorRule& rule = RuleOf(key->role);
    const auto [seen, is_new] = sorted_.stored.emplace(*key, tensor.name);
    if (!is_new) {
      complaints_.Add(absl::StrCat("tensors ", Quoted(seen->second), " and ", Quoted(tensor.name),
                                   " are both ", PlainName(*key),
                                   "; expected it once; export the head with one of them"));
    } else if (!TypeFits(rule.kind, tensor.type)) {
      complaints_.Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(), "; expected ",
                                   ExpectedTypes(rule.kind),
                                   "; convert it, or use a head that is not quantised so"));
    } else if (tensor.shape.size() != rule.shape.size()) {
      complaints_.Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(), "; expected ",
                                   rule.shape.size(),
                                   " dimensions; this is no EAGLE-3 head of a known kind"));
    } else {
      sorted_.weights.emplace(*key, tensor);
    }
  }

  void PlaceScale(const TensorKey& key, const TensorSpan& tensor) {
    if (!TypeFits(TensorKind::kFloats, tensor.type)) {
      complaints_.Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(), "; expected ",
                                   ExpectedTypes(TensorKind::kFloats),
                                   "; use a head with scales of such a type"));
    } else if (!sorted_.scales.emplace(key, tensor).second) {
      complaints_.Add(absl::StrCat("tensor ", Quoted(tensor.name), " is a second scale of ",
                                   PlainName(key),
                                   "; expected one; export the head with one of them"));
    }
  }

  void ComplainOfUnknown(const TensorSpan& tensor) {
    const auto meaning = MeaningOfName(tensor.name);
    complaints_.Add(absl::StrCat(
        "tensor ", Quoted(tensor.name),
        meaning ? absl::StrCat(" belongs to ", *meaning, ", which is not done here")
                : " is unknown",
        "; expected only tensors of an EAGLE-3 head; use a head without it, since a tensor that "
        "goes unused makes a head draft badly"));
  }

  // lm_head and the maps stand outside of whatever has a prefix.
  void NoteFamily(const TensorName& name, const TensorKey& key, const std::string& stored) {
    if (key.role == HeadTensor::kOutput || key.role == HeadTensor::kDraftToTarget ||
        key.role == HeadTensor::kTargetToDraft) {
      return;
    }
    (name.layer.has_value() ? layer_families_ : head_families_).emplace(name.family, stored);
  }

  void CheckFamilies() {
    for (const auto* families : {&layer_families_, &head_families_}) {
      if (families->size() <= 1) continue;
      const std::string listed =
          absl::StrJoin(*families, " and ", [](auto* out, const auto& entry) {
            absl::StrAppend(out, "\"", entry.first, "\" (", entry.second, ")");
          });
      complaints_.Add(absl::StrCat("the file mixes the spellings ", listed,
                                   "; expected one of them throughout; export the head again with "
                                   "one"));
    }
    if (!layer_families_.empty()) sorted_.family = layer_families_.begin()->first;
  }

  void CheckScales() {
    for (const auto& [key, weight] : sorted_.weights) {
      if (IsFp8(weight.type) && sorted_.scales.count(key) == 0) {
        complaints_.Add(absl::StrCat("tensor ", weight.name, " is ", weight.Describe(),
                                     " and has no scale; expected ", weight.name,
                                     "_scale beside it; export the head with its scales"));
      }
    }
    for (const auto& [key, scale] : sorted_.scales) {
      const TensorSpan* const weight = sorted_.Find(key);
      if (weight != nullptr && IsFp8(weight->type)) continue;
      // A weight that was left out has its own complaint.
      if (weight == nullptr && sorted_.stored.count(key) != 0) continue;
      complaints_.Add(
          absl::StrCat("tensor ", scale.name, " is the scale of ",
                       weight == nullptr ? "a weight that is not there" : weight->Describe(),
                       "; expected a weight in F8_E4M3 or F8_E5M2; export the head again"));
    }
  }

  void CountLayers() {
    std::set<int32_t> layers, norms;
    for (const auto& [key, name] : sorted_.stored) {
      if (IsOfLayer(key.role)) layers.insert(key.index);
      if (key.role == HeadTensor::kFcNorm) norms.insert(key.index);
    }
    sorted_.num_layers = static_cast<int32_t>(layers.size());
    sorted_.num_fc_norms = static_cast<int32_t>(norms.size());
    if (!layers.empty() && *layers.rbegin() != sorted_.num_layers - 1) {
      complaints_.Add(absl::StrCat("the file has layers ", absl::StrJoin(layers, ", "),
                                   "; expected 0 to the last without a gap; fetch the head again "
                                   "or export it whole"));
    }
    if (!norms.empty() && *norms.rbegin() != sorted_.num_fc_norms - 1) {
      complaints_.Add(absl::StrCat("the file has fc_norm ", absl::StrJoin(norms, ", "),
                                   "; expected 0 to the last without a gap; fetch the head again "
                                   "or export it whole"));
    }
  }

  const absl::Span<const TensorSpan> tensors_;
  Complaints& complaints_;
  HeadTensors sorted_;
  std::map<std::string, std::string> layer_families_, head_families_;  // -> one name of it
};

}  // namespace

bool IsOfLayer(HeadTensor role) { return RuleOf(role).place == TensorPlace::kLayer; }

std::string PlainName(const TensorKey& key) {
  const TensorRule& rule = RuleOf(key.role);
  switch (rule.place) {
    case TensorPlace::kHead:
      return std::string(rule.part);
    case TensorPlace::kLayer:
      return absl::StrCat("layers.", key.index, ".", rule.part);
    case TensorPlace::kCapture:
      return absl::StrCat("fc_norm.", key.index, ".", rule.part);
  }
  return "";
}

const TensorSpan* HeadTensors::Find(const TensorKey& key) const {
  const auto found = weights.find(key);
  return found == weights.end() ? nullptr : &found->second;
}

HeadTensors SortHeadTensors(absl::Span<const TensorSpan> tensors, Complaints& complaints) {
  return Sorter(tensors, complaints).Sort();
}

}  // namespace aerie
