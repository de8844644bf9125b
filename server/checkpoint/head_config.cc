#include "server/checkpoint/head_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/checkpoint/config_keys.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_layout.h"
#include "server/checkpoint/head_parts.h"
#include "server/checkpoint/quantisation.h"

namespace aerie {
namespace {

// Where the ids of the captured layers may stand.
constexpr absl::string_view kLayerIdKeys[] = {
    "eagle_config.eagle_aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids",
    "aux_hidden_states_layer_ids", "eagle_config.aux_hidden_states_layer_ids"};

// The ids that config.json gives, from whichever key has them. An empty list says nothing.
std::optional<std::vector<int32_t>> LayerIds(const ConfigView& config, std::string& key) {
  std::optional<std::vector<int32_t>> ids;
  for (const absl::string_view candidate : kLayerIdKeys) {
    const auto given = config.Ints(candidate);
    if (!given.has_value() || given->empty()) continue;
    if (ids.has_value() && *ids != *given) {
      config.complaints().Add(
          absl::StrCat(config.SourceOf(candidate), " is ", config.Text(candidate), " but ", key,
                       " is ", config.Text(key),
                       "; expected one list; remove the one with which the head was not trained"));
    } else if (!ids.has_value()) {
      ids = given;
      key = std::string(candidate);
    }
  }
  return ids;
}

WiringClaim ReadWiring(const HeadFiles& files, const std::optional<MeasuredWiring>& measured,
                       HeadSpec& spec) {
  WiringQuestion question;
  question.key = std::string(kLayerIdKeys[0]);
  question.ids = LayerIds(files.config, question.key);
  if (!spec.use_aux_hidden_state.value) {
    // The one capture needs no id.
    if (question.ids.has_value()) {
      files.complaints().Warn(absl::StrCat(
          files.config.SourceOf(question.key), " is ", files.config.Text(question.key), " but ",
          spec.use_aux_hidden_state.source,
          " is false; expected no layer ids with it; the target's final norm is captured"));
    }
    spec.wiring = {*Wiring::Create({Capture::FinalNorm()}, 1), spec.use_aux_hidden_state.source};
    return {question.ids.value_or(std::vector<int32_t>()), "none", WiringCertainty::kCertain};
  }
  question.flag = files.options.layer_ids;
  question.producer = files.layout.layer_ids;
  question.producer_name = files.layout.name.value;
  question.measured = measured;
  question.num_layers = files.target.num_layers;
  WiringAnswer answer = ResolveWiring(question, files.complaints());
  spec.wiring = std::move(answer.wiring);
  const int32_t captures = spec.num_captures.value;
  if (spec.wiring.value.size() != 0 && captures != 0 && spec.wiring.value.size() != captures) {
    files.complaints().Add(absl::StrCat("fc.weight takes ", captures, " captures (",
                                        spec.num_captures.source, ") and the wiring has ",
                                        spec.wiring.value.size(), " (", spec.wiring.source,
                                        "); expected the same; put the layer ids right"));
  }
  return answer.claim;
}

// Keys that were ignored on demand, among the settings.
void AddIgnored(const HeadConfigOptions& options, HeadSpec& spec) {
  if (options.ignored_config_keys.empty()) return;
  spec.fixed.push_back({"ignored_config_keys", absl::StrJoin(options.ignored_config_keys, ", "),
                        "flag --ignore-config-key"});
}

HeadSizes SizesOf(const HeadFiles& files, const HeadSpec& spec) {
  HeadSizes sizes;
  const LatentSpec& latent = spec.latent;
  sizes.latent = spec.attention.value == AttentionKind::kLatent;
  sizes.fc = spec.use_aux_hidden_state.value;
  sizes.fc_input_norm = spec.norm_before_fc.value;
  sizes.fc_norms = spec.fc_norm.value ? spec.num_captures.value : 0;
  // While the number of captures is in doubt, what is there is taken for all.
  if (spec.fc_norm.value && sizes.fc_norms == 0) sizes.fc_norms = files.tensors.num_fc_norms;
  sizes.q_lora = sizes.latent && latent.q_lora_rank.value > 0;
  sizes.qkv_bias = spec.qkv_bias.value;
  sizes.output_bias = spec.output_bias.value;
  sizes.qk_norm = spec.qk_norm.value;
  sizes.layers = std::max(spec.num_layers.value, 1);
  sizes.hidden = spec.hidden_size.value;
  sizes.target_hidden = spec.target_hidden_size.value;
  sizes.aux_width = int64_t{spec.num_captures.value} * spec.target_hidden_size.value;
  sizes.query_width = int64_t{spec.num_heads.value} * spec.head_dim.value;
  sizes.kv_width = int64_t{spec.num_kv_heads.value} * spec.head_dim.value;
  sizes.value_width = int64_t{spec.num_heads.value} *
                      (sizes.latent ? latent.v_head_dim.value : spec.head_dim.value);
  sizes.head_dim = spec.head_dim.value;
  sizes.intermediate = spec.intermediate_size.value;
  sizes.vocab = spec.vocab_size.value;
  sizes.draft_vocab = spec.draft_vocab_size.value;
  sizes.q_lora_rank = latent.q_lora_rank.value;
  sizes.kv_lora_rank = latent.kv_lora_rank.value;
  sizes.kv_down_width = int64_t{latent.kv_lora_rank.value} + latent.qk_rope_head_dim.value;
  sizes.kv_up_width =
      int64_t{spec.num_heads.value} * (latent.qk_nope_head_dim.value + latent.v_head_dim.value);
  return sizes;
}

}  // namespace

ResolvedHead ResolveHead(absl::string_view config_json, const HeadTensors& tensors,
                         const TargetSpec& target, const std::optional<MeasuredWiring>& measured,
                         const HeadConfigOptions& options, Complaints& complaints) {
  const ConfigView config(config_json, "config.json", complaints, options.ignored_config_keys);
  const HeadLayout layout = TellLayout(config, tensors);
  const HeadFiles files{config, tensors, target, options, layout};
  ResolvedHead head;
  HeadSpec& spec = head.spec;
  spec.layout = layout.name;
  ReadNorms(files, spec);
  ReadSizes(files, spec);
  ReadAttention(files, spec);
  ReadVocabularies(files, spec);
  spec.quantisation = CheckQuantisation(config, tensors);
  spec.fixed = CheckConfigKeys(
      config, {layout.layer, tensors.num_layers, spec.attention.value == AttentionKind::kLatent});
  head.wiring = ReadWiring(files, measured, spec);
  AddIgnored(options, spec);

  const HeadSizes sizes = SizesOf(files, spec);
  CheckHeadParts(tensors, sizes, complaints);
  // Shapes follow from the sizes; with a size in doubt they would only repeat the complaint.
  if (complaints.empty()) CheckHeadShapes(tensors, sizes, complaints);
  return head;
}

}  // namespace aerie
