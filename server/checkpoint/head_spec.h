// The effective settings of one drafter, each with its source: what the model is built from and
// what GetServerInfo, the log and aerie-inspect show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/setting.h"
#include "common/wiring.h"
#include "server/checkpoint/rope_spec.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

enum class AttentionKind {
  kGroupedQuery,  // Llama and Qwen: queries, keys and values straight from the input
  kLatent,        // DeepSeek's MLA: keys and values from one narrow vector a row
};

// "grouped-query", "latent".
absl::string_view AttentionKindName(AttentionKind kind);

// Sizes of latent attention; all 0 with another kind.
struct LatentSpec {
  Sourced<int32_t> q_lora_rank;  // 0: queries straight from q_proj
  Sourced<int32_t> kv_lora_rank;
  Sourced<int32_t> qk_nope_head_dim;
  Sourced<int32_t> qk_rope_head_dim;  // even
  Sourced<int32_t> v_head_dim;
};

// Everything that the equations need, none of it optional.
struct HeadSpec {
  Sourced<std::string> layout;          // whose spelling the files have: "speculators"
  Sourced<int32_t> num_layers;          // counted from tensor names
  Sourced<int32_t> hidden_size;         // of the drafter, H
  Sourced<int32_t> target_hidden_size;  // of one capture, Ht
  Sourced<int32_t> num_captures;        // K; 1 without fc
  Sourced<int32_t> intermediate_size;
  Sourced<int32_t> vocab_size;        // of the target
  Sourced<int32_t> draft_vocab_size;  // of lm_head
  Sourced<bool> tied_output;          // lm_head is the head's own embedding
  Sourced<double> rms_norm_eps;

  Sourced<AttentionKind> attention;
  Sourced<int32_t> num_heads;
  Sourced<int32_t> num_kv_heads;  // divides num_heads; equal to it with latent attention
  // Of queries and keys. Even with grouped queries; num_heads x head_dim need not be hidden_size.
  // With latent attention nope + rope; values are then latent.v_head_dim wide.
  Sourced<int32_t> head_dim;
  LatentSpec latent;
  Sourced<double> softmax_scale;
  Sourced<bool> qkv_bias;
  Sourced<bool> output_bias;  // of o_proj
  Sourced<bool> qk_norm;      // of every head of queries and keys, in front of the rotation
  RopeSpec rope;

  // Whether the first layer's residual is the normed hidden state instead of the plain one.
  Sourced<bool> norm_before_residual;
  Sourced<bool> norm_before_fc;  // input_norm over all captures at once
  Sourced<bool> fc_norm;         // a norm for every capture; excludes norm_before_fc
  // Whether the output behind the final norm is fed back instead of the one in front of it.
  Sourced<bool> norm_output;
  // False: the one capture is taken behind the target's final norm, is as wide as the drafter, and
  // enters the first layer as it is; there is no fc.
  Sourced<bool> use_aux_hidden_state{true, ""};

  Sourced<Wiring> wiring;
  // Of the fp8 weights; "none" where there are none.
  Sourced<std::string> quantisation;
  // Keys that hold one value here or that were ignored on demand; so that a reader sees them.
  std::vector<Setting> fixed;

  // All of the above in a fixed order.
  std::vector<Setting> Settings() const;
};

}  // namespace aerie
