#include "server/checkpoint/head_layout.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/checkpoint/config_keys.h"

namespace aerie {
namespace {

bool HasClass(const ConfigView& config, absl::string_view name) {
  // A label of another type is complained of where labels are checked.
  return absl::StrContains(config.Text("architectures"), absl::StrCat("\"", name, "\""));
}

}  // namespace

HeadLayout TellLayout(const ConfigView& config, const HeadTensors& tensors) {
  for (const char* key : {"speculators_model_type", "transformer_layer_config"}) {
    if (!config.Has(key)) continue;
    return {{"speculators", config.SourceOf(key)},
            config.Has("transformer_layer_config") ? kLayerObject : "",
            std::nullopt,
            LayerIdConvention::kInputOfLayer};
  }
  const auto plain = [](std::string name, std::string source) {
    return HeadLayout{{std::move(name), std::move(source)}, "", false, std::nullopt};
  };
  constexpr char kModelOptKey[] = "eagle_config.use_input_layernorm_in_first_layer";
  if (config.Has(kModelOptKey)) return plain("ModelOpt", config.SourceOf(kModelOptKey));
  constexpr char kAngelSlimKey[] = "aux_hidden_states_layer_ids";
  if (config.Has(kAngelSlimKey)) return plain("AngelSlim", config.SourceOf(kAngelSlimKey));
  if (HasClass(config, "Eagle3LlamaForCausalLM")) {
    return plain("AngelSlim", config.SourceOf("architectures"));
  }
  if (HasClass(config, "LlamaForCausalLM")) {
    return plain("SafeAILab", config.SourceOf("architectures"));
  }
  if (absl::StartsWith(tensors.family, "model.")) {
    return plain("NeMo", absl::StrCat("tensor names ", tensors.family));
  }
  return plain("SpecForge", config.Has("architectures") ? config.SourceOf("architectures")
                                                        : "default: no other layout's keys");
}

}  // namespace aerie
