#include "server/checkpoint/head_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {

absl::string_view AttentionKindName(AttentionKind kind) {
  return kind == AttentionKind::kLatent ? "latent" : "grouped-query";
}

std::vector<Setting> HeadSpec::Settings() const {
  std::vector<Setting> settings;
  // What the files do not tell is shown as such, not as the 0 that stands for it.
  const auto put = [&settings](std::string name, std::string value, const std::string& source) {
    if (source.empty()) {
      settings.push_back({std::move(name), "unknown", "not told by these files"});
    } else {
      settings.push_back({std::move(name), std::move(value), source});
    }
  };
  const auto add = [&put](std::string name, const auto& sourced) {
    put(std::move(name), absl::StrCat(sourced.value), sourced.source);
  };
  const auto add_switch = [&put](std::string name, const Sourced<bool>& sourced) {
    put(std::move(name), sourced.value ? "true" : "false", sourced.source);
  };
  add("layout", layout);
  add("num_layers", num_layers);
  add("hidden_size", hidden_size);
  add("target_hidden_size", target_hidden_size);
  add("num_captures", num_captures);
  add("intermediate_size", intermediate_size);
  add("vocab_size", vocab_size);
  add("draft_vocab_size", draft_vocab_size);
  add_switch("tied_output", tied_output);
  add("rms_norm_eps", rms_norm_eps);
  settings.push_back(
      {"attention", std::string(AttentionKindName(attention.value)), attention.source});
  add("num_heads", num_heads);
  add("num_kv_heads", num_kv_heads);
  add("head_dim", head_dim);
  if (attention.value == AttentionKind::kLatent) {
    add("q_lora_rank", latent.q_lora_rank);
    add("kv_lora_rank", latent.kv_lora_rank);
    add("qk_nope_head_dim", latent.qk_nope_head_dim);
    add("qk_rope_head_dim", latent.qk_rope_head_dim);
    add("v_head_dim", latent.v_head_dim);
  }
  add("softmax_scale", softmax_scale);
  add_switch("qkv_bias", qkv_bias);
  add_switch("output_bias", output_bias);
  add_switch("qk_norm", qk_norm);
  const std::vector<Setting> rotation = rope.Settings();
  settings.insert(settings.end(), rotation.begin(), rotation.end());
  add_switch("norm_before_residual", norm_before_residual);
  add_switch("norm_before_fc", norm_before_fc);
  add_switch("fc_norm", fc_norm);
  add_switch("norm_output", norm_output);
  add_switch("use_aux_hidden_state", use_aux_hidden_state);
  put("wiring", wiring.value.ToString(), wiring.source);
  add("quantisation", quantisation);
  settings.insert(settings.end(), fixed.begin(), fixed.end());
  return settings;
}

}  // namespace aerie
