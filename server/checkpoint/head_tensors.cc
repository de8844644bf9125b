#include "server/checkpoint/head_tensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/checkpoint/json_check.h"

namespace aerie {
namespace {

using Size = int64_t HeadSizes::*;

enum class Kind {
  kWeight,   // F32, F16 or BF16
  kIndices,  // I32 or I64
  kMask,     // BOOL
};

struct TensorRule {
  HeadTensor tensor;
  absl::string_view name;
  Kind kind;
  bool required;
  std::vector<Size> shape;
  int64_t columns_factor = 1;  // of the last extent
};

const std::vector<TensorRule>& Rules() {
  using S = HeadSizes;
  static const auto* const rules = new std::vector<TensorRule>{
      {HeadTensor::kFc, "fc.weight", Kind::kWeight, true, {&S::hidden, &S::aux_width}},
      {HeadTensor::kInputNorm,
       "midlayer.input_layernorm.weight",
       Kind::kWeight,
       true,
       {&S::hidden}},
      {HeadTensor::kHiddenNorm, "midlayer.hidden_norm.weight", Kind::kWeight, true, {&S::hidden}},
      // Twice as wide as the hidden state: the normed embedding first, the normed hidden state
      // second.
      {HeadTensor::kQuery,
       "midlayer.self_attn.q_proj.weight",
       Kind::kWeight,
       true,
       {&S::query_width, &S::hidden},
       2},
      {HeadTensor::kKey,
       "midlayer.self_attn.k_proj.weight",
       Kind::kWeight,
       true,
       {&S::kv_width, &S::hidden},
       2},
      {HeadTensor::kValue,
       "midlayer.self_attn.v_proj.weight",
       Kind::kWeight,
       true,
       {&S::kv_width, &S::hidden},
       2},
      {HeadTensor::kAttentionOutput,
       "midlayer.self_attn.o_proj.weight",
       Kind::kWeight,
       true,
       {&S::hidden, &S::query_width}},
      {HeadTensor::kPostAttentionNorm,
       "midlayer.post_attention_layernorm.weight",
       Kind::kWeight,
       true,
       {&S::hidden}},
      {HeadTensor::kGate,
       "midlayer.mlp.gate_proj.weight",
       Kind::kWeight,
       true,
       {&S::intermediate, &S::hidden}},
      {HeadTensor::kUp,
       "midlayer.mlp.up_proj.weight",
       Kind::kWeight,
       true,
       {&S::intermediate, &S::hidden}},
      {HeadTensor::kDown,
       "midlayer.mlp.down_proj.weight",
       Kind::kWeight,
       true,
       {&S::hidden, &S::intermediate}},
      {HeadTensor::kFinalNorm, "norm.weight", Kind::kWeight, true, {&S::hidden}},
      {HeadTensor::kOutput, "lm_head.weight", Kind::kWeight, true, {&S::draft_vocab, &S::hidden}},
      {HeadTensor::kEmbedding,
       "embed_tokens.weight",
       Kind::kWeight,
       false,
       {&S::vocab, &S::hidden}},
      {HeadTensor::kDraftToTarget, "d2t", Kind::kIndices, false, {&S::draft_vocab}},
      {HeadTensor::kTargetToDraft, "t2d", Kind::kMask, false, {&S::vocab}},
  };
  return *rules;
}

const TensorRule& RuleOf(HeadTensor tensor) {
  return *std::find_if(Rules().begin(), Rules().end(),
                       [tensor](const TensorRule& rule) { return rule.tensor == tensor; });
}

// What a name outside the table belongs to. The first row that fits is told.
struct NameHint {
  enum class Where { kPrefix, kInside, kSuffix } where;
  absl::string_view part;
  absl::string_view meaning;
};

constexpr NameHint kHints[] = {
    {NameHint::Where::kSuffix, "_scale", "a quantised head"},
    {NameHint::Where::kInside, "_scale_", "a quantised head"},
    {NameHint::Where::kSuffix, ".qweight", "a quantised head"},
    {NameHint::Where::kSuffix, ".qzeros", "a quantised head"},
    {NameHint::Where::kSuffix, ".scales", "a quantised head"},
    {NameHint::Where::kInside, "lora_", "an adapter that has not been merged"},
    {NameHint::Where::kInside, ".q_a_", "multi-head latent attention"},
    {NameHint::Where::kInside, ".q_b_", "multi-head latent attention"},
    {NameHint::Where::kInside, ".kv_a_", "multi-head latent attention"},
    {NameHint::Where::kInside, ".kv_b_", "multi-head latent attention"},
    {NameHint::Where::kInside, ".q_norm.", "a norm of queries"},
    {NameHint::Where::kInside, ".k_norm.", "a norm of keys"},
    {NameHint::Where::kSuffix, ".bias", "a bias"},
    {NameHint::Where::kPrefix, "fc_norm.", "fc_norm, a norm for every capture"},
    {NameHint::Where::kPrefix, "aux_norm_", "fc_norm, a norm for every capture"},
    {NameHint::Where::kPrefix, "input_norm.", "norm_before_fc, a norm of the aux hidden state"},
    {NameHint::Where::kPrefix, "mask_hidden", "a head that drafts in parallel"},
    {NameHint::Where::kPrefix, "parallel_draft_heads.", "a head that drafts in parallel"},
    {NameHint::Where::kPrefix, "midlayer.0.", "a head with numbered layers"},
    {NameHint::Where::kPrefix, "midlayer.1.", "a head with several layers"},
    {NameHint::Where::kPrefix, "layers.", "another naming family, layers.N."},
    {NameHint::Where::kPrefix, "model.", "another naming family, with model. in front"},
};

std::optional<absl::string_view> MeaningOf(absl::string_view name) {
  for (const NameHint& hint : kHints) {
    const bool fits = hint.where == NameHint::Where::kPrefix   ? absl::StartsWith(name, hint.part)
                      : hint.where == NameHint::Where::kSuffix ? absl::EndsWith(name, hint.part)
                                                               : absl::StrContains(name, hint.part);
    if (fits) return hint.meaning;
  }
  return std::nullopt;
}

// Buffers that hold nothing which config.json does not say as well; the only names that are
// skipped.
bool IsRedundant(absl::string_view name) { return absl::EndsWith(name, "rotary_emb.inv_freq"); }

bool TypeFits(Kind kind, TensorType type) {
  switch (kind) {
    case Kind::kWeight:
      return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
    case Kind::kIndices:
      return type == TensorType::kI32 || type == TensorType::kI64;
    case Kind::kMask:
      return type == TensorType::kBool;
  }
  return false;
}

absl::string_view ExpectedTypes(Kind kind) {
  switch (kind) {
    case Kind::kWeight:
      return "F32, F16 or BF16";
    case Kind::kIndices:
      return "I32 or I64";
    case Kind::kMask:
      return "BOOL";
  }
  return "";
}

void ComplainOfUnknown(absl::string_view name, Complaints& complaints) {
  const auto meaning = MeaningOf(name);
  complaints.Add(absl::StrCat(
      "tensor ", Quoted(name),
      meaning ? absl::StrCat(" belongs to ", *meaning, ", which is not done here") : " is unknown",
      "; expected only the tensors of a one-layer head named midlayer., fc, norm, lm_head, "
      "embed_tokens, d2t, t2d; ",
      "use a head of this kind, since a tensor that goes unused makes a head draft badly"));
}

}  // namespace

absl::string_view HeadTensorName(HeadTensor tensor) { return RuleOf(tensor).name; }

std::map<HeadTensor, TensorSpan> SortHeadTensors(absl::Span<const TensorSpan> tensors,
                                                 Complaints& complaints) {
  std::map<HeadTensor, TensorSpan> sorted;
  std::set<HeadTensor> present;  // also those that are left out
  for (const TensorSpan& tensor : tensors) {
    const auto rule = std::find_if(Rules().begin(), Rules().end(),
                                   [&](const TensorRule& r) { return r.name == tensor.name; });
    if (rule == Rules().end()) {
      if (!IsRedundant(tensor.name)) ComplainOfUnknown(tensor.name, complaints);
      continue;
    }
    present.insert(rule->tensor);
    if (!TypeFits(rule->kind, tensor.type)) {
      complaints.Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(), "; expected ",
                                  ExpectedTypes(rule->kind),
                                  "; convert it, or use a head that is not quantised"));
    } else if (tensor.shape.size() != rule->shape.size()) {
      complaints.Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(), "; expected ",
                                  rule->shape.size(),
                                  " dimensions; this is no EAGLE-3 head of this kind"));
    } else {
      sorted.emplace(rule->tensor, tensor);
    }
  }
  std::vector<absl::string_view> missing;
  for (const TensorRule& rule : Rules()) {
    if (rule.required && !present.contains(rule.tensor)) missing.push_back(rule.name);
  }
  if (!missing.empty()) {
    complaints.Add(absl::StrCat("the weights lack ", absl::StrJoin(missing, ", "),
                                "; expected every tensor of a one-layer head named midlayer.; ",
                                present.contains(HeadTensor::kFc)
                                    ? "fetch the head again or export it whole"
                                    : "without fc.weight this is no EAGLE-3 head: check the path"));
  }
  return sorted;
}

void CheckHeadShapes(const std::map<HeadTensor, TensorSpan>& tensors, const HeadSizes& sizes,
                     Complaints& complaints) {
  for (const TensorRule& rule : Rules()) {
    const auto found = tensors.find(rule.tensor);
    if (found == tensors.end()) continue;
    std::vector<int64_t> expected;
    for (const Size size : rule.shape) expected.push_back(sizes.*size);
    expected.back() *= rule.columns_factor;
    if (found->second.shape != expected) {
      complaints.Add(absl::StrCat(
          "tensor ", rule.name, " is ", found->second.Describe(), "; expected [",
          absl::StrJoin(expected, ", "),
          "] by the other tensors, config.json and the target; the files do not belong together: "
          "check which head and which target are given"));
    }
  }
}

}  // namespace aerie
