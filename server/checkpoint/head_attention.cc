// The attention of a head: its kind, its heads and their sizes.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/head_parts.h"
#include "server/checkpoint/rope_config.h"

namespace aerie {
namespace {

bool Stored(const HeadFiles& files, HeadTensor role) {
  for (const auto& [key, name] : files.tensors.stored) {
    if (key.role == role) return true;
  }
  return false;
}

// Rows of a matrix per head. nullopt when it is not there, or with a complaint when they do not
// divide.
std::optional<int32_t> PerHead(const HeadFiles& files, HeadTensor role, size_t dimension,
                               const Sourced<int32_t>& heads) {
  const auto extent = ExtentOf(files, role, dimension);
  if (!extent.has_value() || heads.value < 1) return std::nullopt;
  if (extent->value % heads.value == 0) return extent->value / heads.value;
  const TensorSpan& tensor = *files.tensors.Find(role);
  files.complaints().Add(absl::StrCat("tensor ", tensor.name, " is ", tensor.Describe(),
                                      "; expected ", dimension == 0 ? "rows" : "columns",
                                      " for each of ", heads.value, " heads (", heads.source,
                                      "); check that these files belong together"));
  return std::nullopt;
}

void ReadHeadCounts(const HeadFiles& files, HeadSpec& spec) {
  const ConfigView& config = files.config;
  const std::string key = files.Layer("num_attention_heads");
  const auto heads = config.Positive(key);
  if (!heads.has_value()) {
    if (!config.Has(key)) {
      files.complaints().Add(absl::StrCat("config.json has no ", key,
                                          "; expected the head's own; fetch the file again"));
    }
    return;
  }
  spec.num_heads = {*heads, config.SourceOf(key)};
  spec.num_kv_heads = {*heads, "default: num_attention_heads"};
  if (spec.attention.value == AttentionKind::kLatent) {
    spec.num_kv_heads.source = "latent attention: num_attention_heads";
    return;
  }
  const std::string kv_key = files.Layer("num_key_value_heads");
  if (const auto stated = config.Positive(kv_key)) {
    spec.num_kv_heads = {*stated, config.SourceOf(kv_key)};
  }
  if (*heads % spec.num_kv_heads.value != 0) {
    files.complaints().Add(
        absl::StrCat("config.json: ", *heads, " attention heads share ", spec.num_kv_heads.value,
                     " key heads; expected a divisor; put num_key_value_heads right"));
  }
}

void ReadGrouped(const HeadFiles& files, HeadSpec& spec) {
  const auto dim = PerHead(files, HeadTensor::kQuery, 0, spec.num_heads);
  if (!dim.has_value()) return;
  const std::string& name = files.tensors.Find(HeadTensor::kQuery)->name;
  spec.head_dim = {*dim, absl::StrCat("tensor ", name, " by num_attention_heads")};
  if (*dim % 2 != 0) {
    files.complaints().Add(absl::StrCat("head_dim is ", *dim, " (", spec.head_dim.source,
                                        "); expected an even number; check that these files belong "
                                        "together"));
  }
  files.config.Expect(files.Layer("head_dim"),
                      absl::StrCat("rows of ", name, " / num_attention_heads"), *dim);
}

void ReadLatent(const HeadFiles& files, HeadSpec& spec) {
  const ConfigView& config = files.config;
  LatentSpec& latent = spec.latent;
  latent.q_lora_rank = {0, "no tensor q_a_proj"};
  if (const auto rank = ExtentOf(files, HeadTensor::kQueryDown, 0)) latent.q_lora_rank = *rank;
  if (const auto rank = ExtentOf(files, HeadTensor::kKvDownNorm, 0)) latent.kv_lora_rank = *rank;
  if (const auto width = ExtentOf(files, HeadTensor::kKvDown, 0)) {
    latent.qk_rope_head_dim = {width->value - latent.kv_lora_rank.value,
                               absl::StrCat(width->source, " rows - kv_lora_rank")};
  }
  if (const auto v = PerHead(files, HeadTensor::kAttentionOutput, 1, spec.num_heads)) {
    latent.v_head_dim = {*v, "tensor o_proj's columns by num_attention_heads"};
  }
  if (const auto both = PerHead(files, HeadTensor::kKvUp, 0, spec.num_heads)) {
    latent.qk_nope_head_dim = {*both - latent.v_head_dim.value,
                               "tensor kv_b_proj's rows by num_attention_heads - v_head_dim"};
  }
  const struct {
    const char* key;
    const Sourced<int32_t>& found;
  } rows[] = {{"q_lora_rank", latent.q_lora_rank},
              {"kv_lora_rank", latent.kv_lora_rank},
              {"qk_nope_head_dim", latent.qk_nope_head_dim},
              {"qk_rope_head_dim", latent.qk_rope_head_dim},
              {"v_head_dim", latent.v_head_dim}};
  for (const auto& row : rows) {
    config.Expect(files.Layer(row.key), row.found.source, row.found.value);
  }
  const int32_t dim = latent.qk_nope_head_dim.value + latent.qk_rope_head_dim.value;
  spec.head_dim = {dim, "qk_nope_head_dim + qk_rope_head_dim"};
  config.Expect(files.Layer("qk_head_dim"), spec.head_dim.source, dim);
  if (latent.qk_nope_head_dim.value < 1 || latent.qk_rope_head_dim.value < 2 ||
      latent.qk_rope_head_dim.value % 2 != 0) {
    files.complaints().Add(absl::StrCat(
        "latent attention with qk_nope_head_dim ", latent.qk_nope_head_dim.value,
        " and qk_rope_head_dim ", latent.qk_rope_head_dim.value,
        " by the tensors; expected positive ones, the second even; check that these files belong "
        "together"));
  }
}

}  // namespace

void ReadAttention(const HeadFiles& files, HeadSpec& spec) {
  const bool latent = Stored(files, HeadTensor::kKvDown);
  spec.attention = {latent ? AttentionKind::kLatent : AttentionKind::kGroupedQuery,
                    latent ? "tensor kv_a_proj_with_mqa" : "no tensor kv_a_proj_with_mqa"};
  const std::string rank = files.Layer("kv_lora_rank");
  if (!latent && files.config.Has(rank)) {
    files.complaints().Add(absl::StrCat(
        files.config.SourceOf(rank), " is ", files.config.Text(rank),
        " but the weights hold no kv_a_proj_with_mqa; expected the tensors of latent attention; "
        "check that these files belong together"));
  }
  ReadHeadCounts(files, spec);
  if (latent) {
    ReadLatent(files, spec);
  } else {
    ReadGrouped(files, spec);
  }
  spec.qkv_bias = PartFromTensor(files, HeadTensor::kQueryBias, {files.Layer("attention_bias")});
  spec.output_bias = PartFromTensor(files, HeadTensor::kAttentionOutputBias, {});
  spec.qk_norm = PartFromTensor(files, HeadTensor::kKeyNorm, {});
  if (!spec.qk_norm.value) spec.qk_norm = PartFromTensor(files, HeadTensor::kQueryNorm, {});

  const ConfigContext context{files.layout.layer, files.tensors.num_layers, latent};
  spec.rope = ReadRope(files.config,
                       {context, latent ? spec.latent.qk_rope_head_dim.value : spec.head_dim.value,
                        files.options.rope_theta});
  const Sourced<double> factor = LatentScaleFactor(files.config, context, spec.rope);
  spec.softmax_scale = {
      spec.head_dim.value > 0 ? factor.value / std::sqrt(spec.head_dim.value) : 0,
      factor.source.empty()
          ? std::string("head_dim^-0.5")
          : absl::StrCat("head_dim^-0.5 times yarn's magnitude squared at ", factor.source)};
}

}  // namespace aerie
