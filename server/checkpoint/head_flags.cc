#include "server/checkpoint/head_flags.h"

#include <algorithm>
#include <cmath>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace aerie {
namespace {

struct FlagRule {
  absl::string_view key;
  absl::string_view allowed;  // JSON texts between bars; empty: only absent or null
  absl::string_view meaning;  // of any other value
  bool shown = false;         // among the settings; the first allowed text is the default
};

constexpr FlagRule kFlags[] = {
    {"norm_before_residual", "false", "the residual taken from the normed hidden state", true},
    {"norm_before_fc", "false", "a norm of the whole aux hidden state", true},
    {"fc_norm", "false", "a norm for every capture", true},
    {"use_aux_norm", "false", "a norm for every capture"},
    {"norm_output", "false", "the normed output fed back, or by older exporters something else",
     true},
    {"use_aux_hidden_state", "true", "a single capture that bypasses fc"},
    {"attention_bias", "false", "biases of the attention products", true},
    {"bias", "false", "biases"},
    {"mlp_bias", "false", "biases of the MLP products"},
    {"hidden_act", "\"silu\"", "another activation", true},
    {"quantization_config", "", "quantised weights"},
    {"compression_config", "", "quantised weights"},
    {"partial_rotary_factor", "1|1.0", "a rotation of only a part of each head"},
    {"rope_interleave", "false", "a rotation of neighbouring channels"},
    {"use_sliding_window", "false", "attention to a window"},
    {"logit_scale", "1|1.0", "scaled logits"},
    {"logits_scaling", "1|1.0", "scaled logits"},
    {"final_logit_softcapping", "", "capped logits"},
    {"attn_logit_softcapping", "", "capped attention scores"},
    {"query_pre_attn_scalar", "", "another attention scale"},
    {"attention_multiplier", "", "another attention scale"},
    {"embedding_multiplier", "1|1.0", "scaled embeddings"},
    {"scale_emb", "1|1.0", "scaled embeddings"},
    {"residual_multiplier", "1|1.0", "a scaled residual"},
    {"q_lora_rank", "", "multi-head latent attention"},
    {"kv_lora_rank", "", "multi-head latent attention"},
    {"mask_token_id", "", "drafting in parallel"},
    {"pard_token", "", "drafting in parallel"},
    {"ptd_token_id", "", "drafting in parallel"},
    {"transformer_layer_config", "", "the layout of speculators"},
    {"speculators_model_type", "", "the layout of speculators"},
    {"eagle_config.use_aux_hidden_state", "true", "a single capture that bypasses fc", true},
    {"eagle_config.use_input_layernorm_in_first_layer", "true", "an embedding without a norm"},
    {"eagle_config.use_last_layernorm", "true", "no norm in front of the output matrix"},
    {"eagle_config.use_mtp_layernorm", "false", "other norms in front of the layer"},
    {"eagle_config.next_layer_regular", "true|false", "other layers behind the first"},
    {"eagle_config.parallel_draft_step", "1|0", "drafting in parallel"},
    {"eagle_config.parallel_draft_heads_num_layers", "1|0", "drafting in parallel"},
    {"eagle_config.return_hidden_post_norm", "false", "the normed output fed back"},
    {"eagle_config.eh_proj_before_attn", "false", "a projection in front of the layer"},
};

// Handled elsewhere, so not unknown.
constexpr absl::string_view kOtherEagleKeys[] = {"eagle_aux_hidden_state_layer_ids"};

void Refuse(const ConfigView& config, absl::string_view key, absl::string_view meaning,
            absl::string_view expected) {
  config.complaints().Add(absl::StrCat(config.SourceOf(key), " = ", config.Text(key), " asks for ",
                                       meaning, ", which is not done here; expected ", expected,
                                       "; use a head without it"));
}

// Qwen's configs state a window and switch it off beside it.
void CheckWindow(const ConfigView& config) {
  if (config.Has("sliding_window") && config.Text("use_sliding_window") != "false") {
    Refuse(config, "sliding_window", "attention to a window",
           "null, or use_sliding_window = false");
  }
  if (config.Has("layer_types") && config.Text("layer_types") != "[\"full_attention\"]") {
    Refuse(config, "layer_types", "another kind of attention or of layers", "[\"full_attention\"]");
  }
}

void CheckEagleConfig(const ConfigView& config) {
  for (const std::string& name : config.Members("eagle_config")) {
    const std::string key = absl::StrCat("eagle_config.", name);
    const bool known = std::any_of(std::begin(kFlags), std::end(kFlags),
                                   [&](const FlagRule& rule) { return rule.key == key; }) ||
                       std::find(std::begin(kOtherEagleKeys), std::end(kOtherEagleKeys), name) !=
                           std::end(kOtherEagleKeys);
    if (!known)
      Refuse(config, key, "something unknown",
             "only keys that are known to change nothing or are done");
  }
}

// The members of rope_scaling or rope_parameters; the type, when one is given.
std::string CheckRopeObject(const ConfigView& config, absl::string_view object,
                            Sourced<std::string>& type) {
  static constexpr absl::string_view kKnown[] = {"type", "rope_type", "rope_theta",
                                                 "partial_rotary_factor"};
  for (const char* spelling : {"rope_type", "type"}) {
    const std::string key = absl::StrCat(object, ".", spelling);
    const auto given = config.String(key);
    if (!given.has_value()) continue;
    if (*given != "default") {
      Refuse(config, key, "a scaled rotation", "\"default\" or none");
      return *given;
    }
    if (type.source.empty() || absl::StartsWith(type.source, "default"))
      type = {*given, config.SourceOf(key)};
  }
  for (const std::string& name : config.Members(object)) {
    const std::string key = absl::StrCat(object, ".", name);
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      Refuse(config, key, "a scaled or sectioned rotation", "only a type and a base");
    }
  }
  const std::string partial = absl::StrCat(object, ".partial_rotary_factor");
  if (config.Has(partial) && config.Number(partial) != 1.0) {
    Refuse(config, partial, "a rotation of only a part of each head", "1");
  }
  return "default";
}

}  // namespace

std::vector<Setting> CheckHeadFlags(const ConfigView& config) {
  std::vector<Setting> settings;
  for (const FlagRule& rule : kFlags) {
    const std::vector<std::string> allowed = absl::StrSplit(rule.allowed, '|', absl::SkipEmpty());
    const std::string text = config.Text(rule.key);
    if (config.Has(rule.key) && std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      Refuse(config, rule.key, rule.meaning,
             allowed.empty() ? "null" : absl::StrJoin(allowed, " or "));
    }
    if (!rule.shown) continue;
    const absl::string_view name = absl::StripPrefix(rule.key, "eagle_config.");
    const absl::string_view value =
        absl::StripSuffix(absl::StripPrefix(allowed.front(), "\""), "\"");
    settings.push_back(
        {std::string(name), std::string(value),
         config.Has(rule.key) ? config.SourceOf(rule.key) : "default: the only one done here"});
  }
  CheckWindow(config);
  CheckEagleConfig(config);
  return settings;
}

RopeSpec ReadRope(const ConfigView& config) {
  RopeSpec rope{{"default", "default: no scaling is named"},
                {10000.0, "default: 10000, whatever the target's is"}};
  for (const char* object : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(object)) continue;
    if (CheckRopeObject(config, object, rope.type) != "default") return rope;
  }
  bool stated = false;
  for (const char* key : {"rope_theta", "rope_parameters.rope_theta", "rope_scaling.rope_theta"}) {
    const auto theta = config.Number(key);
    if (!theta.has_value()) continue;
    if (!(*theta > 0.0) || !std::isfinite(*theta)) {
      config.complaints().Add(absl::StrCat(config.SourceOf(key), " is ", *theta,
                                           "; expected a base above 0; put it right in the file"));
    } else if (stated && *theta != rope.theta.value) {
      config.complaints().Add(
          absl::StrCat(config.SourceOf(key), " is ", *theta, " but ", rope.theta.source, " is ",
                       rope.theta.value,
                       "; expected one base; remove the one with which the head was not trained"));
    } else if (!stated) {
      rope.theta = {*theta, config.SourceOf(key)};
      stated = true;
    }
  }
  return rope;
}

}  // namespace aerie
