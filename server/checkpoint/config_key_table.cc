#include "server/checkpoint/config_key_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace aerie {
namespace {

// Of the layer or the whole head, wherever its producer puts it.
constexpr KeyRule kRules[] = {
    {"hidden_act", "\"silu\"", "another activation"},
    {"hidden_activation", "\"silu\"", "another activation"},
    {"bias", "false", "biases of fc or of the MLP"},
    {"mlp_bias", "false", "biases of the MLP"},
    {"use_sliding_window", "false", "attention to a sliding window"},
    {"logit_scale", "1|1.0", "scaled logits"},
    {"logits_scaling", "1|1.0", "scaled logits"},
    {"final_logit_softcapping", "", "capped logits"},
    {"attn_logit_softcapping", "", "capped attention scores"},
    {"query_pre_attn_scalar", "", "another attention scale"},
    {"attention_multiplier", "", "another attention scale"},
    {"embedding_multiplier", "1|1.0", "scaled embeddings"},
    {"scale_emb", "1|1.0", "scaled embeddings"},
    {"residual_multiplier", "1|1.0", "a scaled residual"},
    {"scale_depth", "1|1.0", "a scaled residual"},
    {"compression_config", "", "quantised weights"},
    {"mask_token_id", "", "drafting in parallel (P-EAGLE)"},
    {"pard_token", "", "drafting in parallel (P-EAGLE)"},
    {"ptd_token_id", "", "drafting in parallel (P-EAGLE)"},
    {"parallel_drafting", "false", "drafting in parallel (P-EAGLE)"},
    {"dflash_config", "", "another kind of drafter (DFlash)"},
    {"speculators_model_type", "\"eagle3\"", "another kind of drafter"},
};

constexpr KeyRule kEagleRules[] = {
    {"use_input_layernorm_in_first_layer", "true", "an embedding without a norm"},
    {"use_last_layernorm", "true", "no norm in front of lm_head"},
    {"use_mtp_layernorm", "false", "other norms in front of the layer"},
    {"parallel_draft_step", "1|0", "drafting in parallel"},
    {"parallel_draft_heads_num_layers", "1|0", "drafting in parallel"},
    {"eh_proj_before_attn", "false", "a projection in front of the layer"},
};

// Read elsewhere; of the layer.
constexpr absl::string_view kLayerKeys[] = {
    "hidden_size",     "intermediate_size",     "num_attention_heads", "num_key_value_heads",
    "head_dim",        "num_hidden_layers",     "rms_norm_eps",        "max_position_embeddings",
    "vocab_size",      "attention_bias",        "rope_theta",          "rope_scaling",
    "rope_parameters", "partial_rotary_factor", "rope_interleave",     "q_lora_rank",
    "kv_lora_rank",    "qk_nope_head_dim",      "qk_rope_head_dim",    "qk_head_dim",
    "v_head_dim",      "layer_types",           "sliding_window",      "tie_word_embeddings",
};

// Read elsewhere; of the whole head.
constexpr absl::string_view kHeadKeys[] = {
    "draft_vocab_size",
    "target_hidden_size",
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "use_aux_norm",
    "norm_output",
    "use_aux_hidden_state",
    "num_aux_hidden_states",
    "eagle_aux_hidden_state_layer_ids",
    "aux_hidden_states_layer_ids",
    "eagle_config",
    "quantization_config",
    "tie_word_embeddings",
    "transformer_layer_config",
};

constexpr absl::string_view kEagleKeys[] = {
    "eagle_aux_hidden_state_layer_ids",
    "aux_hidden_states_layer_ids",
    "num_aux_hidden_states",
    "use_aux_hidden_state",
    "return_hidden_post_norm",
    "next_layer_regular",
};

// Change nothing in a pass: labels, token ids, number types, generation, training, and what only
// means something for experts, which a head's MLP has none of.
constexpr absl::string_view kHarmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "dtype",
    "model_type",
    "name_or_path",
    "speculators_config",
    "speculators_version",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "unsloth_version",
    //
    "begin_suppress_tokens",
    "bos_token_id",
    "decoder_start_token_id",
    "eos_token_id",
    "image_token_id",
    "mask_index",
    "pad_token_id",
    "sep_token_id",
    "suppress_tokens",
    "video_token_id",
    "vision_end_token_id",
    "vision_start_token_id",
    "vision_token_id",
    //
    "bad_words_ids",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "temperature",
    "tf_legacy_loss",
    "top_k",
    "top_p",
    "typical_p",
    "use_bfloat16",
    //
    "add_cross_attention",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "finetuning_task",
    "id2label",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "prefix",
    "problem_type",
    "pruned_heads",
    "return_dict",
    "task_specific_params",
    "tie_encoder_decoder",
    "torchscript",
    "use_cache",
    //
    "attention_dropout",
    "embd_pdrop",
    "embed_requires_grad",
    "gradient_checkpointing",
    "hidden_dropout",
    "initializer_range",
    "length",
    "max_window_layers",
    "pretraining_tp",
    "resid_pdrop",
    "ttt_length",
    //
    "aux_loss_alpha",
    "ep_size",
    "first_k_dense_replace",
    "intermediate_size_mlp",
    "moe_intermediate_size",
    "moe_layer_freq",
    "n_group",
    "n_routed_experts",
    "n_shared_experts",
    "norm_topk_prob",
    "num_experts_per_tok",
    "num_nextn_predict_layers",
    "routed_scaling_factor",
    "scoring_func",
    "seq_aux",
    "topk_group",
    "topk_method",
};

template <size_t N>
bool Holds(const absl::string_view (&list)[N], absl::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

template <size_t N>
const KeyRule* RuleIn(const KeyRule (&rules)[N], absl::string_view name) {
  const auto found = std::find_if(std::begin(rules), std::end(rules),
                                  [name](const KeyRule& rule) { return rule.key == name; });
  return found == std::end(rules) ? nullptr : found;
}

}  // namespace

const KeyRule* FindKeyRule(absl::string_view name) { return RuleIn(kRules, name); }
const KeyRule* FindEagleKeyRule(absl::string_view name) { return RuleIn(kEagleRules, name); }
bool IsLayerKey(absl::string_view name) { return Holds(kLayerKeys, name); }
bool IsHeadKey(absl::string_view name) { return Holds(kHeadKeys, name); }
bool IsEagleKey(absl::string_view name) { return Holds(kEagleKeys, name); }
bool IsHarmlessKey(absl::string_view name) { return Holds(kHarmless, name); }

}  // namespace aerie
