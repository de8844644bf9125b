#include "server/checkpoint/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/checkpoint/rope_keys.h"
#include "server/checkpoint/rope_scaling.h"

namespace aerie {
namespace {

// The members that each type uses, beside the type, rope_theta and partial_rotary_factor.
struct TypeRow {
  absl::string_view name;
  RopeType type;
  std::vector<absl::string_view> members;
};

const std::vector<TypeRow>& Types() {
  static const auto* const types = new std::vector<TypeRow>{
      {"default", RopeType::kDefault, {"mrope_section", "mrope_interleaved"}},
      {"linear", RopeType::kLinear, {"factor"}},
      {"dynamic", RopeType::kDynamic, {"factor", "original_max_position_embeddings"}},
      {"llama3",
       RopeType::kLlama3,
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
      {"yarn",
       RopeType::kYarn,
       {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale",
        "mscale_all_dim", "attention_factor", "attn_factor", "truncate"}},
  };
  return *types;
}

class RopeReader {
 public:
  RopeReader(const ConfigView& config, const RopeQuestion& question)
      : config_(config),
        question_(question),
        prefix_(question.context.layer),
        keys_(config, question.context.layer) {}

  RopeSpec Read() {
    const TypeRow* const row = ReadType();
    ReadTheta();
    ReadDims();
    if (row == nullptr) return rope_;
    rope_.type.value = row->type;
    CheckMembers(*row);
    if (row->type == RopeType::kDefault) CheckSections();
    ReadRopeScaling(keys_, rope_);
    return rope_;
  }

 private:
  // nullptr when there is no telling.
  const TypeRow* ReadType() {
    std::optional<Sourced<std::string>> type;
    bool mrope = false;
    for (const absl::string_view object : kRopeObjects) {
      for (const absl::string_view spelling : {"rope_type", "type"}) {
        const std::string key = absl::StrCat(prefix_, object, ".", spelling);
        auto given = config_.String(key);
        if (!given.has_value()) continue;
        // Of text all three positions of a token are equal, so that the sections do not matter.
        if (*given == "mrope") {
          mrope = true;
          given = "default";
        }
        if (!type.has_value()) {
          type = {*given, config_.SourceOf(key)};
        } else if (type->value != *given) {
          keys_.Differ(key, type->source, absl::StrCat("\"", type->value, "\""));
          return nullptr;
        }
      }
    }
    rope_.type = {RopeType::kDefault, "default: no scaling is named"};
    if (!type.has_value()) return &Types().front();
    rope_.type.source = type->source;
    if (mrope) {
      absl::StrAppend(&rope_.type.source, " (mrope, the same as default for text)");
      config_.complaints().Warn(
          absl::StrCat(type->source,
                       " is mrope, three positions a token; expected text, whose three are equal, "
                       "so that it is the default rotation; do not use this head with images"));
    }
    for (const TypeRow& row : Types()) {
      if (row.name == type->value) return &row;
    }
    config_.complaints().Add(
        absl::StrCat(type->source, " = \"", type->value,
                     "\" asks for a scaled rotation that is not done here; expected default, "
                     "linear, dynamic, llama3, yarn or mrope; use a head with one of them"));
    return nullptr;
  }

  void ReadTheta() {
    rope_.theta = {10000.0, "default: 10000, whatever the target's is"};
    const auto stated = keys_.Number("rope_theta");
    if (stated.has_value()) rope_.theta = *stated;
    if (question_.theta_flag.has_value())
      rope_.theta = {*question_.theta_flag, "flag --rope-theta"};
    if (!(rope_.theta.value > 1.0) || !std::isfinite(rope_.theta.value)) {
      keys_.OutOfRange(rope_.theta, "a base above 1");
    }
  }

  void ReadDims() {
    const bool latent = question_.context.latent;
    rope_.interleaved = {
        latent, latent ? "default: of latent attention" : "default: of grouped-query attention"};
    const std::string interleave = absl::StrCat(prefix_, "rope_interleave");
    if (const auto stated = config_.Bool(interleave)) {
      if (!latent && *stated) {
        keys_.Refuse(interleave, "a rotation of neighbouring channels", "false");
      }
      rope_.interleaved = {*stated, config_.SourceOf(interleave)};
    }
    rope_.dims = {question_.width, latent ? "qk_rope_head_dim" : "head_dim"};
    const auto partial = keys_.Number("partial_rotary_factor");
    if (!partial.has_value()) return;
    if (!(partial->value > 0.0 && partial->value <= 1.0)) {
      keys_.OutOfRange(*partial, "a part of each head, above 0 and at most 1");
      return;
    }
    if (latent && partial->value != 1.0) {
      config_.complaints().Add(absl::StrCat(partial->source, " is ", partial->value,
                                            " beside latent attention, which says by "
                                            "qk_rope_head_dim how much turns; expected 1; remove "
                                            "the key"));
    }
    const auto dims = static_cast<int32_t>(question_.width * partial->value);
    if (question_.width > 0 && (dims < 2 || dims % 2 != 0)) {
      config_.complaints().Add(absl::StrCat(partial->source, " is ", partial->value, ", ", dims,
                                            " of ", question_.width,
                                            " channels; expected an even number; put it right in "
                                            "the file"));
    }
    rope_.dims = {dims, partial->source};
  }

  void CheckMembers(const TypeRow& row) {
    for (const absl::string_view object : kRopeObjects) {
      const std::string key = absl::StrCat(prefix_, object);
      if (config_.Has(key) && !absl::StartsWith(config_.Text(key), "{")) {
        keys_.Refuse(key, "a rotation in an unknown form", "an object or null");
      }
      for (const std::string& name : config_.Members(key)) {
        if (name == "rope_type" || name == "type" || name == "rope_theta" ||
            name == "partial_rotary_factor" ||
            std::find(row.members.begin(), row.members.end(), name) != row.members.end()) {
          continue;
        }
        const std::string member = absl::StrCat(key, ".", name);
        config_.complaints().Add(absl::StrCat(
            config_.SourceOf(member), " = ", config_.Text(member),
            " asks for a scaled rotation but means nothing to the type ", row.name, " (",
            rope_.type.source, "); expected only what belongs to the type; put the type right"));
      }
    }
  }

  void CheckSections() {
    for (const std::string& key : keys_.Places("mrope_section")) {
      const auto sections = config_.Ints(key);
      if (!sections.has_value() || question_.width == 0) continue;
      const int64_t sum = std::accumulate(sections->begin(), sections->end(), int64_t{0});
      if (sum == rope_.dims.value / 2) continue;
      config_.complaints().Add(
          absl::StrCat(config_.SourceOf(key), " is ", config_.Text(key), " and sums up to ", sum,
                       "; expected ", rope_.dims.value / 2,
                       ", half the channels that turn, or text would not turn as by "
                       "default; put it right in the file"));
    }
  }

  const ConfigView& config_;
  const RopeQuestion& question_;
  const std::string& prefix_;
  const RopeKeys keys_;
  RopeSpec rope_;
};

}  // namespace

RopeSpec ReadRope(const ConfigView& config, const RopeQuestion& question) {
  return RopeReader(config, question).Read();
}

Sourced<double> LatentScaleFactor(const ConfigView& config, const ConfigContext& context,
                                  const RopeSpec& rope) {
  Sourced<double> factor = {1.0, ""};
  if (!context.latent || rope.type.value != RopeType::kYarn || !(rope.factor.value > 1.0)) {
    return factor;
  }
  for (const absl::string_view object : kRopeObjects) {
    const std::string key = absl::StrCat(context.layer, object, ".mscale_all_dim");
    const auto weight = config.Number(key);
    if (!weight.has_value() || *weight == 0.0) continue;
    const double magnitude = YarnMagnitude(*weight, rope.factor.value);
    factor = {magnitude * magnitude, config.SourceOf(key)};
  }
  return factor;
}

}  // namespace aerie
