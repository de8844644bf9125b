#include "server/checkpoint/head_tensor_table.h"

#include <algorithm>

namespace aerie {

absl::Span<const TensorRule> TensorRules() {
  using R = HeadTensor;
  using K = TensorKind;
  using P = TensorPlace;
  using S = HeadSizes;
  static const auto* const rules = new std::vector<TensorRule>{
      {R::kFc, "fc.weight", K::kMatrix, P::kHead, {&S::hidden, &S::aux_width}},
      {R::kFcInputNorm, "input_norm.weight", K::kFloats, P::kHead, {&S::aux_width}},
      {R::kFcNorm, "weight", K::kFloats, P::kCapture, {&S::target_hidden}},
      {R::kInputNorm, "input_layernorm.weight", K::kFloats, P::kLayer, {&S::hidden}},
      {R::kHiddenNorm, "hidden_norm.weight", K::kFloats, P::kLayer, {&S::hidden}},
      // In layer 0 the normed embedding comes first, the normed hidden state second.
      {R::kQuery,
       "self_attn.q_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::query_width, &S::hidden},
       true},
      {R::kKey, "self_attn.k_proj.weight", K::kMatrix, P::kLayer, {&S::kv_width, &S::hidden}, true},
      {R::kValue,
       "self_attn.v_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::kv_width, &S::hidden},
       true},
      {R::kAttentionOutput,
       "self_attn.o_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::hidden, &S::value_width}},
      {R::kQueryBias, "self_attn.q_proj.bias", K::kFloats, P::kLayer, {&S::query_width}},
      {R::kKeyBias, "self_attn.k_proj.bias", K::kFloats, P::kLayer, {&S::kv_width}},
      {R::kValueBias, "self_attn.v_proj.bias", K::kFloats, P::kLayer, {&S::kv_width}},
      {R::kAttentionOutputBias, "self_attn.o_proj.bias", K::kFloats, P::kLayer, {&S::hidden}},
      {R::kQueryNorm, "self_attn.q_norm.weight", K::kFloats, P::kLayer, {&S::head_dim}},
      {R::kKeyNorm, "self_attn.k_norm.weight", K::kFloats, P::kLayer, {&S::head_dim}},
      {R::kQueryDown,
       "self_attn.q_a_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::q_lora_rank, &S::hidden},
       true},
      {R::kQueryDownNorm,
       "self_attn.q_a_layernorm.weight",
       K::kFloats,
       P::kLayer,
       {&S::q_lora_rank}},
      {R::kQueryUp,
       "self_attn.q_b_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::query_width, &S::q_lora_rank}},
      {R::kKvDown,
       "self_attn.kv_a_proj_with_mqa.weight",
       K::kMatrix,
       P::kLayer,
       {&S::kv_down_width, &S::hidden},
       true},
      {R::kKvDownNorm,
       "self_attn.kv_a_layernorm.weight",
       K::kFloats,
       P::kLayer,
       {&S::kv_lora_rank}},
      {R::kKvUp,
       "self_attn.kv_b_proj.weight",
       K::kMatrix,
       P::kLayer,
       {&S::kv_up_width, &S::kv_lora_rank}},
      {R::kPostAttentionNorm,
       "post_attention_layernorm.weight",
       K::kFloats,
       P::kLayer,
       {&S::hidden}},
      {R::kGate, "mlp.gate_proj.weight", K::kMatrix, P::kLayer, {&S::intermediate, &S::hidden}},
      {R::kUp, "mlp.up_proj.weight", K::kMatrix, P::kLayer, {&S::intermediate, &S::hidden}},
      {R::kDown, "mlp.down_proj.weight", K::kMatrix, P::kLayer, {&S::hidden, &S::intermediate}},
      {R::kFinalNorm, "norm.weight", K::kFloats, P::kHead, {&S::hidden}},
      {R::kOutput, "lm_head.weight", K::kMatrix, P::kHead, {&S::draft_vocab, &S::hidden}},
      {R::kEmbedding, "embed_tokens.weight", K::kFloats, P::kHead, {&S::vocab, &S::hidden}},
      {R::kDraftToTarget, "d2t", K::kIndices, P::kHead, {&S::draft_vocab}},
      {R::kTargetToDraft, "t2d", K::kMask, P::kHead, {&S::vocab}},
  };
  return *rules;
}

const TensorRule& RuleOf(HeadTensor role) {
  const auto rules = TensorRules();
  return *std::find_if(rules.begin(), rules.end(),
                       [role](const TensorRule& rule) { return rule.role == role; });
}

bool IsFp8(TensorType type) { return type == TensorType::kF8E4M3 || type == TensorType::kF8E5M2; }

bool TypeFits(TensorKind kind, TensorType type) {
  const bool floats =
      type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
  switch (kind) {
    case TensorKind::kMatrix:
      return floats || IsFp8(type);
    case TensorKind::kFloats:
      return floats;
    case TensorKind::kIndices:
      return type == TensorType::kI32 || type == TensorType::kI64;
    case TensorKind::kMask:
      return type == TensorType::kBool;
  }
  return false;
}

absl::string_view ExpectedTypes(TensorKind kind) {
  switch (kind) {
    case TensorKind::kMatrix:
      return "F32, F16 or BF16, or F8_E4M3 or F8_E5M2 with its scale";
    case TensorKind::kFloats:
      return "F32, F16 or BF16";
    case TensorKind::kIndices:
      return "I32 or I64";
    case TensorKind::kMask:
      return "BOOL";
  }
  return "";
}

}  // namespace aerie
