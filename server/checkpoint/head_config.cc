#include "server/checkpoint/head_config.h"

#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_flags.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/layer_ids.h"
#include "server/checkpoint/vocabulary_map.h"

namespace aerie {
namespace {

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

// Where the ids of the captured layers may stand.
constexpr absl::string_view kLayerIdKeys[] = {"eagle_config.eagle_aux_hidden_state_layer_ids",
                                              "eagle_aux_hidden_state_layer_ids",
                                              "aux_hidden_states_layer_ids"};

// A size that a tensor holds and config.json may repeat.
struct SizeRule {
  Sourced<int32_t> HeadSpec::*size;
  HeadTensor tensor;
  size_t dimension;
  absl::string_view config_key;
};

constexpr SizeRule kSizes[] = {
    {&HeadSpec::hidden_size, HeadTensor::kFc, 0, "hidden_size"},
    {&HeadSpec::intermediate_size, HeadTensor::kGate, 0, "intermediate_size"},
    {&HeadSpec::draft_vocab_size, HeadTensor::kOutput, 0, "draft_vocab_size"},
};

// Resolves one head; a class only so that its steps share what they read.
class Resolver {
 public:
  Resolver(absl::string_view config_json, absl::Span<const TensorSpan> tensors,
           const TargetSpec& target, const HeadConfigOptions& options, Complaints& complaints)
      : target_(target),
        options_(options),
        complaints_(complaints),
        config_(config_json, "config.json", complaints),
        tensors_(SortHeadTensors(tensors, complaints)) {}

  HeadSpec Resolve() {
    spec_.fixed = CheckHeadFlags(config_);
    spec_.rope = ReadRope(config_);
    ReadSizes();
    ReadTargetSizes();
    ReadHeads();
    ReadEpsilon();
    ReadWiring();
    CheckVocabularySizes();
    // Shapes follow from the sizes; with a size in doubt they would only repeat the complaint.
    if (complaints_.empty()) CheckShapes();
    return std::move(spec_);
  }

 private:
  const TensorSpan* Find(HeadTensor tensor) const {
    const auto found = tensors_.find(tensor);
    return found == tensors_.end() ? nullptr : &found->second;
  }

  // A whole number of config.json in 1..2^31-1.
  std::optional<int32_t> Positive(absl::string_view key) {
    const auto value = config_.Int(key);
    if (!value.has_value()) return std::nullopt;
    if (*value >= 1 && *value <= kMaxExtent) return static_cast<int32_t>(*value);
    complaints_.Add(absl::StrCat(config_.SourceOf(key), " is ", *value, "; expected 1..",
                                 kMaxExtent, "; put it right in the file"));
    return std::nullopt;
  }

  void Contradicts(absl::string_view key, int64_t stated, absl::string_view other, int64_t found) {
    complaints_.Add(absl::StrCat(config_.SourceOf(key), " is ", stated, " but ", other, " is ",
                                 found,
                                 "; expected the same; check that these files belong together"));
  }

  void ReadSizes() {
    for (const SizeRule& rule : kSizes) {
      const TensorSpan* const tensor = Find(rule.tensor);
      if (tensor == nullptr) continue;  // a complaint already
      const int64_t extent = tensor->shape[rule.dimension];
      const std::string name(HeadTensorName(rule.tensor));
      if (extent < 1 || extent > kMaxExtent) {
        complaints_.Add(absl::StrCat("tensor ", name, " is ", tensor->Describe(),
                                     "; expected extents in 1..", kMaxExtent,
                                     "; export the head again"));
        continue;
      }
      spec_.*rule.size = {static_cast<int32_t>(extent), absl::StrCat("tensor ", name)};
      // The vocabulary's sizes are compared all at once further down.
      const auto stated = Positive(rule.config_key);
      if (rule.tensor != HeadTensor::kOutput && stated.has_value() && *stated != extent) {
        Contradicts(rule.config_key, *stated, absl::StrCat("its extent in ", name), extent);
      }
    }
  }

  void ReadTargetSizes() {
    spec_.target_hidden_size = {target_.hidden_size, "target's config.json"};
    spec_.vocab_size = {target_.vocab_size, "target's config.json"};
    if (const auto stated = Positive("target_hidden_size");
        stated.has_value() && *stated != target_.hidden_size) {
      Contradicts("target_hidden_size", *stated, "the target's hidden size", target_.hidden_size);
    }
    if (const auto stated = Positive("vocab_size");
        stated.has_value() && *stated != target_.vocab_size) {
      Contradicts("vocab_size", *stated, "the target's vocabulary", target_.vocab_size);
    }
    if (Find(HeadTensor::kFc) != nullptr && spec_.hidden_size.value != target_.hidden_size) {
      complaints_.Add(absl::StrCat(
          "the head is ", spec_.hidden_size.value, " wide (tensor fc.weight) and the target ",
          target_.hidden_size,
          ", and heads with a width of their own are not done here; expected the same; check "
          "which head and which target are given"));
    }
  }

  void ReadHeads() {
    const auto heads = Positive("num_attention_heads");
    if (!heads.has_value()) {
      if (!config_.Has("num_attention_heads")) {
        complaints_.Add(
            "config.json has no num_attention_heads; expected the head's own; fetch the file "
            "again");
      }
      return;
    }
    spec_.num_heads = {*heads, config_.SourceOf("num_attention_heads")};
    const auto kv_heads = Positive("num_key_value_heads");
    spec_.num_kv_heads = kv_heads.has_value()
                             ? Sourced<int32_t>{*kv_heads, config_.SourceOf("num_key_value_heads")}
                             : Sourced<int32_t>{*heads, "default: num_attention_heads"};
    if (*heads % spec_.num_kv_heads.value != 0) {
      complaints_.Add(
          absl::StrCat("config.json: ", *heads, " attention heads share ", spec_.num_kv_heads.value,
                       " key heads; expected a divisor; put num_key_value_heads right"));
    }
    const TensorSpan* const query = Find(HeadTensor::kQuery);
    if (query == nullptr) return;
    const int64_t width = query->shape[0];
    if (width < 1 || width > kMaxExtent || width % *heads != 0 || (width / *heads) % 2 != 0) {
      complaints_.Add(
          absl::StrCat("tensor ", query->name, " is ", query->Describe(),
                       "; expected a row for each of ", *heads,
                       " heads (config.json: num_attention_heads) times an even head_dim; check "
                       "that these files belong together"));
      return;
    }
    const auto dim = static_cast<int32_t>(width / *heads);
    spec_.head_dim = {dim, absl::StrCat("tensor ", query->name, " by num_attention_heads")};
    if (const auto stated = Positive("head_dim"); stated.has_value() && *stated != dim) {
      Contradicts("head_dim", *stated,
                  absl::StrCat("rows of ", query->name, " / num_attention_heads"), dim);
    }
  }

  void ReadEpsilon() {
    const auto epsilon = config_.Number("rms_norm_eps");
    if (!epsilon.has_value()) {
      spec_.rms_norm_eps = {1e-6, "default: of a Llama config"};
      return;
    }
    if (!(*epsilon > 0.0 && *epsilon < 1.0)) {
      complaints_.Add(absl::StrCat("config.json: rms_norm_eps is ", *epsilon,
                                   "; expected a small number above 0; put it right in the file"));
    }
    spec_.rms_norm_eps = {*epsilon, config_.SourceOf("rms_norm_eps")};
  }

  // The ids that config.json gives, from whichever key has them.
  std::optional<std::vector<int32_t>> LayerIds(absl::string_view& key) {
    std::optional<std::vector<int32_t>> ids;
    for (const absl::string_view candidate : kLayerIdKeys) {
      const auto given = config_.Ints(candidate);
      if (!given.has_value()) continue;
      if (ids.has_value() && *ids != *given) {
        complaints_.Add(absl::StrCat(
            config_.SourceOf(candidate), " is ", config_.Text(candidate), " but ", key, " is ",
            config_.Text(key),
            "; expected one list; remove the one with which the head was not trained"));
      } else if (!ids.has_value()) {
        ids = given;
        key = candidate;
      }
    }
    return ids;
  }

  void ReadWiring() {
    absl::string_view key = kLayerIdKeys[0];
    const auto ids = LayerIds(key);
    spec_.wiring = ResolveWiring(ids, key, options_.layer_ids, target_.num_layers, complaints_);
    const TensorSpan* const fc = Find(HeadTensor::kFc);
    if (fc == nullptr) return;
    const int64_t columns = fc->shape[1];
    if (columns < 1 || columns % target_.hidden_size != 0) {
      complaints_.Add(absl::StrCat("tensor fc.weight has ", columns,
                                   " columns; expected a multiple of the target's hidden size ",
                                   target_.hidden_size,
                                   "; check which head and which target are given"));
      return;
    }
    const int64_t captures = columns / target_.hidden_size;
    if (spec_.wiring.value.size() != 0 && spec_.wiring.value.size() != captures) {
      complaints_.Add(absl::StrCat("fc.weight takes ", captures, " captures (", columns,
                                   " columns / ", target_.hidden_size, ") and the wiring has ",
                                   spec_.wiring.value.size(), " (", spec_.wiring.source,
                                   "); expected the same; put the layer ids right"));
    }
    if (const auto stated = Positive("num_aux_hidden_states");
        stated.has_value() && *stated != captures) {
      Contradicts("num_aux_hidden_states", *stated, "the number of captures that fc.weight takes",
                  captures);
    }
  }

  // Four places say how large the draft vocabulary is; a disagreement names them all.
  void CheckVocabularySizes() {
    const TensorSpan* const output = Find(HeadTensor::kOutput);
    if (output == nullptr) return;
    const int64_t rows = output->shape[0];
    const TensorSpan* const d2t = Find(HeadTensor::kDraftToTarget);
    const TensorSpan* const t2d = Find(HeadTensor::kTargetToDraft);
    const auto stated = config_.Int("draft_vocab_size");
    const bool agree = (!stated.has_value() || *stated == rows) &&
                       (d2t == nullptr || d2t->shape[0] == rows) &&
                       (t2d == nullptr || CountTrue(*t2d) == rows) && rows <= target_.vocab_size;
    if (agree) return;
    complaints_.Add(absl::StrCat(
        "the draft vocabulary has ", rows, " tokens by lm_head.weight, ",
        stated ? absl::StrCat(*stated) : std::string("none stated"), " by config.json, ",
        d2t ? absl::StrCat(d2t->shape[0]) : std::string("no tensor"), " by d2t, ",
        t2d ? absl::StrCat(CountTrue(*t2d)) : std::string("no tensor"), " by t2d, of the target's ",
        target_.vocab_size,
        "; expected the same and no more than the target's; export the head with the map it was "
        "trained with"));
  }

  void CheckShapes() {
    CheckHeadShapes(tensors_,
                    {.hidden = spec_.hidden_size.value,
                     .aux_width = int64_t{spec_.wiring.value.size()} * target_.hidden_size,
                     .query_width = int64_t{spec_.num_heads.value} * spec_.head_dim.value,
                     .kv_width = int64_t{spec_.num_kv_heads.value} * spec_.head_dim.value,
                     .intermediate = spec_.intermediate_size.value,
                     .vocab = target_.vocab_size,
                     .draft_vocab = spec_.draft_vocab_size.value},
                    complaints_);
  }

  const TargetSpec& target_;
  const HeadConfigOptions& options_;
  Complaints& complaints_;
  const ConfigView config_;
  const std::map<HeadTensor, TensorSpan> tensors_;
  HeadSpec spec_;
};

}  // namespace

HeadSpec ResolveHeadSpec(absl::string_view config_json, absl::Span<const TensorSpan> tensors,
                         const TargetSpec& target, const HeadConfigOptions& options,
                         Complaints& complaints) {
  return Resolver(config_json, tensors, target, options, complaints).Resolve();
}

}  // namespace aerie
