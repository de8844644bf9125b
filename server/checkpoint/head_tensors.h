// Which tensors a head has and in which shapes; the one table of it.
//
// Roles are of this program; how producers spell them is in tensor_names.h. What a reader would get
// wrong: only layer 0 has two norms in front of its attention and takes the embedding and the
// hidden state side by side; the norm of a later layer is kInputNorm, whether the file calls it
// input_layernorm or hidden_norm.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/safetensors/safetensors.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

enum class HeadTensor {
  kFc,           // [H, K x Ht]; absent with use_aux_hidden_state = false
  kFcInputNorm,  // [K x Ht] input_norm: norm_before_fc
  kFcNorm,       // [Ht], one for each capture: fc_norm
  // Of each layer.
  kInputNorm,   // [H] of the token embedding in layer 0, of the hidden state in later ones
  kHiddenNorm,  // [H] layer 0: of the fused aux hidden state, or of the draft hidden state
  kQuery,       // [nh x d, 2H or H]; with latent attention only without q_lora
  kKey,
  kValue,
  kAttentionOutput,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kAttentionOutputBias,
  kQueryNorm,  // [d]
  kKeyNorm,    // [d]
  // Latent attention.
  kQueryDown,      // [q_lora, 2H or H] q_a_proj
  kQueryDownNorm,  // [q_lora]
  kQueryUp,        // [nh x (nope + rope), q_lora] q_b_proj
  kKvDown,         // [kv_lora + rope, 2H or H] kv_a_proj_with_mqa: the rotated part comes last
  kKvDownNorm,     // [kv_lora]
  kKvUp,           // [nh x (nope + v), kv_lora] kv_b_proj: of each head nope first, then v
  kPostAttentionNorm,
  kGate,
  kUp,
  kDown,
  // Behind the layers.
  kFinalNorm,
  kOutput,         // [Vd, H] lm_head; may be borrowed
  kEmbedding,      // [V, H]; may be borrowed
  kDraftToTarget,  // [Vd] needed with a reduced vocabulary
  kTargetToDraft,  // [V] only compared with the former
};

// One tensor of a head. Made of a role alone it is that of layer 0, or of capture 0 for kFcNorm.
struct TensorKey {
  HeadTensor role;
  int32_t index = 0;  // of the layer; of the capture for kFcNorm; else 0

  TensorKey(HeadTensor r, int32_t i = 0) : role(r), index(i) {}  // NOLINT: so that a role is a key
  friend auto operator<=>(const TensorKey&, const TensorKey&) = default;
};

using TensorMap = std::map<TensorKey, TensorSpan>;

// The plain name, whatever the file's spelling: "layers.0.self_attn.q_proj.weight".
std::string PlainName(const TensorKey& key);
bool IsOfLayer(HeadTensor role);

// A head's tensors by role.
struct HeadTensors {
  TensorMap weights;
  // Of weights in fp8, by the key of the weight: what is stored times this is what is meant. F32,
  // F16 or BF16; one number ([], [1] or [1, 1]) or one for each output row ([rows] or [rows, 1]).
  TensorMap scales;
  // Name in the file of everything that has a role, also of what was left out with a complaint.
  std::map<TensorKey, std::string> stored;
  std::string family;      // how layers are spelled: "midlayer.", "model.layers.N."
  int32_t num_layers = 0;  // 0..num_layers-1 are all there, unless complained of
  int32_t num_fc_norms = 0;

  const TensorSpan* Find(const TensorKey& key) const;
};

// Complains of every tensor that is unknown, spelled as in another family than the rest, of another
// element type or number of dimensions than its role has (such are left out), and of gaps in the
// numbers of layers. Which roles have to be there is not known here.
HeadTensors SortHeadTensors(absl::Span<const TensorSpan> tensors, Complaints& complaints);

// What has to be there, and how large.
struct HeadSizes {
  bool latent = false;
  bool fc = true;
  bool fc_input_norm = false;
  int64_t fc_norms = 0;
  bool q_lora = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;
  int64_t layers = 1;

  int64_t hidden = 0;         // H
  int64_t target_hidden = 0;  // Ht
  int64_t aux_width = 0;      // K x Ht
  int64_t query_width = 0;    // num_heads x head_dim
  int64_t kv_width = 0;       // num_kv_heads x head_dim
  int64_t value_width = 0;    // columns of o_proj
  int64_t head_dim = 0;
  int64_t intermediate = 0;  // I
  int64_t vocab = 0;         // V; 0: unknown
  int64_t draft_vocab = 0;   // Vd
  int64_t q_lora_rank = 0, kv_lora_rank = 0;
  int64_t kv_down_width = 0;  // kv_lora + rope
  int64_t kv_up_width = 0;    // num_heads x (nope + v)
};

// Complains of what is missing; and of tensors for which the settings have no use.
void CheckHeadParts(const HeadTensors& tensors, const HeadSizes& sizes, Complaints& complaints);
// Complains of every tensor whose shape is not what the sizes say, and of scales that fit no
// weight.
void CheckHeadShapes(const HeadTensors& tensors, const HeadSizes& sizes, Complaints& complaints);

}  // namespace aerie
