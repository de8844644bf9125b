#include "server/checkpoint/config_keys.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/checkpoint/config_key_table.h"

namespace aerie {
namespace {

bool IsEagle3(const std::string& name) {
  return absl::StrContains(absl::AsciiStrToLower(name), "eagle3");
}

// Shares what every check needs.
class KeyChecker {
 public:
  KeyChecker(const ConfigView& config, const ConfigContext& context)
      : config_(config), context_(context) {}

  void CheckAll() {
    const bool nested = !context_.layer.empty();
    for (const std::string& name : config_.Members("")) {
      const bool of_layer = IsLayerKey(name);
      if (nested && of_layer && !IsHeadKey(name)) {
        CheckMisplaced(name);
      } else if (!of_layer && !IsHeadKey(name)) {
        Check(name, FindKeyRule(name), IsHarmlessKey(name));
      }
    }
    if (nested) {
      for (const std::string& name : config_.Members("transformer_layer_config")) {
        if (IsLayerKey(name)) continue;
        Check(absl::StrCat(context_.layer, name), FindKeyRule(name), IsHarmlessKey(name));
      }
    }
    for (const std::string& name : config_.Members("eagle_config")) {
      if (IsEagleKey(name)) continue;
      Check(absl::StrCat("eagle_config.", name), FindEagleKeyRule(name), false);
    }
    CheckWindow();
    CheckLaterLayers();
    CheckLabels();
  }

 private:
  void Refuse(const std::string& key, absl::string_view meaning, absl::string_view expected) {
    config_.complaints().Add(
        absl::StrCat(config_.SourceOf(key), " = ", config_.Text(key), " asks for ", meaning,
                     ", which is not done here; expected ", expected, "; use a head without it"));
  }

  void Check(const std::string& key, const KeyRule* rule, bool harmless) {
    if (harmless) return;
    if (rule == nullptr) {
      config_.complaints().Add(absl::StrCat(
          config_.SourceOf(key), " = ", config_.Text(key),
          " is a key that is not known here and may change the maths; expected only known keys; "
          "find out what it does, and if that is nothing, load with --ignore-config-key=",
          key));
      return;
    }
    const std::vector<std::string> allowed = absl::StrSplit(rule->allowed, '|', absl::SkipEmpty());
    if (std::find(allowed.begin(), allowed.end(), config_.Text(key)) != allowed.end()) return;
    Refuse(key, rule->meaning, allowed.empty() ? "null" : absl::StrJoin(allowed, " or "));
  }

  // A setting of the layer beside the object that holds the layer's settings: unread, unless it
  // only repeats.
  void CheckMisplaced(const std::string& name) {
    const std::string inside = absl::StrCat(context_.layer, name);
    if (config_.Text(name) == config_.Text(inside)) return;
    config_.complaints().Add(absl::StrCat(config_.SourceOf(name), " is ", config_.Text(name),
                                          " but ", inside, " is ", config_.Text(inside),
                                          "; expected it only there; remove one of the two"));
  }

  // Qwen's configs state a window and switch it off beside it.
  void CheckWindow() {
    const std::string window = absl::StrCat(context_.layer, "sliding_window");
    if (config_.Has(window) &&
        config_.Text(absl::StrCat(context_.layer, "use_sliding_window")) != "false") {
      Refuse(window, "attention to a sliding window", "null, or use_sliding_window = false");
    }
    const std::string types = absl::StrCat(context_.layer, "layer_types");
    const auto listed = config_.Strings(types);
    if (listed.has_value() && std::any_of(listed->begin(), listed->end(), [](const auto& type) {
          return type != "full_attention";
        })) {
      Refuse(types, "another kind of attention", "only \"full_attention\"");
    }
  }

  void CheckLaterLayers() {
    const std::string key = "eagle_config.next_layer_regular";
    if (context_.num_layers > 1 && config_.Bool(key) == false) {
      Refuse(key, "later layers that are no ordinary ones", "true");
    }
  }

  // Class names say little, but those of other drafters say enough.
  void CheckLabels() {
    const auto classes = config_.Strings("architectures");
    if (!classes.has_value()) return;
    bool known = false;
    for (const std::string& name : *classes) {
      if (absl::StartsWithIgnoreCase(name, "PEagle")) {
        Refuse("architectures", "drafting in parallel (P-EAGLE)", "an EAGLE-3 head");
        return;
      }
      known = known || IsEagle3(name);
      const bool latent = absl::StrContains(name, "Deepseek");
      if (IsEagle3(name) && latent != context_.latent) {
        config_.complaints().Warn(
            absl::StrCat(config_.SourceOf("architectures"), " is ", config_.Text("architectures"),
                         " but the tensors have ", context_.latent ? "latent" : "grouped-query",
                         " attention; expected a label that fits; the tensors are followed"));
      }
    }
    if (!known && !classes->empty()) {
      config_.complaints().Warn(absl::StrCat(
          config_.SourceOf("architectures"), " is ", config_.Text("architectures"),
          ", a plain model, but the tensors are an EAGLE-3 head's; expected a label such as "
          "LlamaForCausalLMEagle3; the tensors are followed"));
    }
    const auto type = config_.String(absl::StrCat(context_.layer, "model_type"));
    if (type.has_value() && !context_.latent &&
        (absl::StrContains(*type, "deepseek") || absl::StrContains(*type, "kimi"))) {
      config_.complaints().Warn(
          absl::StrCat(config_.SourceOf(context_.layer + "model_type"), " is ", *type,
                       " but the tensors have grouped-query attention; "
                       "expected a label that fits; the tensors are followed"));
    }
  }

  const ConfigView& config_;
  const ConfigContext& context_;
};

}  // namespace

std::vector<Setting> CheckConfigKeys(const ConfigView& config, const ConfigContext& context) {
  KeyChecker(config, context).CheckAll();
  const std::string key = absl::StrCat(context.layer, "hidden_act");
  return {{"hidden_act", "silu",
           config.Has(key) ? config.SourceOf(key) : "default: the only one done here"}};
}

}  // namespace aerie
