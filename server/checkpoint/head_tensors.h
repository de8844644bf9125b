// Which tensors a head has, under which names and in which shapes; the one table of it.
//
// Names are those of the SpecForge / SGLang / SafeAILab layout: one layer, `midlayer.`, nothing in
// front. A name outside the table is a complaint that says what it belongs to, since a tensor that
// would go unused is a head drafting badly.
#pragma once

#include <map>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/types/span.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/safetensors.h"

namespace aerie {

enum class HeadTensor {
  kFc,
  kInputNorm,   // of the token embedding
  kHiddenNorm,  // of the fused aux hidden state, or of the draft hidden state
  kQuery,
  kKey,
  kValue,
  kAttentionOutput,
  kPostAttentionNorm,
  kGate,
  kUp,
  kDown,
  kFinalNorm,
  kOutput,         // lm_head
  kEmbedding,      // optional: the target's is used without it
  kDraftToTarget,  // optional: needed with a reduced vocabulary
  kTargetToDraft,  // optional: only compared with the former
};

// The name in the file: "midlayer.self_attn.q_proj.weight".
absl::string_view HeadTensorName(HeadTensor tensor);

// By role. Complains of every tensor that is missing, unknown, of another element type or another
// number of dimensions; such tensors are left out.
std::map<HeadTensor, TensorSpan> SortHeadTensors(absl::Span<const TensorSpan> tensors,
                                                 Complaints& complaints);

// One symbol of a shape and what it has to be.
struct HeadSizes {
  int64_t hidden = 0;        // H
  int64_t aux_width = 0;     // K x Ht
  int64_t query_width = 0;   // num_heads x head_dim
  int64_t kv_width = 0;      // num_kv_heads x head_dim
  int64_t intermediate = 0;  // I
  int64_t vocab = 0;         // V
  int64_t draft_vocab = 0;   // Vd
};

// Complains of every tensor whose shape is not what the sizes say.
void CheckHeadShapes(const std::map<HeadTensor, TensorSpan>& tensors, const HeadSizes& sizes,
                     Complaints& complaints);

}  // namespace aerie
