// Any config.json with any tensors: the head is refused, or every size that the equations need is
// known.
//
// An input is the text of a config.json, a byte 0, and a safetensors file; without the latter the
// tensors are those of a small sound head. The text is tried as a wiring.json and as a target's
// config.json as well.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/check.h"
#include "common/safetensors/safetensors.h"
#include "server/checkpoint/head_config.h"
#include "server/checkpoint/wiring_file.h"

namespace {

using aerie::TensorSpan;
using aerie::TensorType;

// Of one layer, 2 heads of 4 numbers, all zeros; the vocabulary is whole.
std::vector<TensorSpan> SoundTensors() {
  static const std::string* const zeros = new std::string(size_t{64} << 10, '\0');
  std::vector<TensorSpan> tensors;
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    int64_t bytes = 4;
    for (const int64_t extent : shape) bytes *= extent;
    tensors.push_back({name, TensorType::kF32, std::move(shape),
                       std::string_view(*zeros).substr(0, static_cast<size_t>(bytes))});
  };
  add("fc.weight", {8, 24});
  add("midlayer.input_layernorm.weight", {8});
  add("midlayer.hidden_norm.weight", {8});
  add("midlayer.self_attn.q_proj.weight", {8, 16});
  add("midlayer.self_attn.k_proj.weight", {8, 16});
  add("midlayer.self_attn.v_proj.weight", {8, 16});
  add("midlayer.self_attn.o_proj.weight", {8, 8});
  add("midlayer.post_attention_layernorm.weight", {8});
  add("midlayer.mlp.gate_proj.weight", {12, 8});
  add("midlayer.mlp.up_proj.weight", {12, 8});
  add("midlayer.mlp.down_proj.weight", {8, 12});
  add("norm.weight", {8});
  add("lm_head.weight", {20, 8});
  return tensors;
}

// False when `file` is no safetensors file.
bool TensorsOf(std::string_view file, std::vector<TensorSpan>& tensors) {
  const auto entries = aerie::ParseSafetensorsHeader(file, file.size());
  if (!entries.ok()) return false;
  for (const aerie::TensorEntry& entry : *entries) {
    tensors.push_back(
        {entry.name, entry.type, entry.shape, file.substr(entry.begin, entry.end - entry.begin)});
  }
  return true;
}

void Resolve(absl::string_view config, const std::vector<TensorSpan>& tensors,
             const aerie::TargetSpec& target) {
  aerie::Complaints complaints;
  const aerie::HeadTensors sorted = aerie::SortHeadTensors(tensors, complaints);
  const aerie::HeadSpec spec =
      aerie::ResolveHead(config, sorted, target, std::nullopt, {}, complaints).spec;
  AERIE_CHECK(!spec.Settings().empty());
  if (!complaints.empty()) return;
  AERIE_CHECK(spec.num_layers.value >= 1 && spec.hidden_size.value >= 1);
  AERIE_CHECK(spec.num_heads.value >= 1 && spec.num_kv_heads.value >= 1);
  AERIE_CHECK(spec.head_dim.value >= 1 && spec.softmax_scale.value > 0.0);
  AERIE_CHECK(spec.rope.dims.value >= 2 && spec.rope.dims.value % 2 == 0);
  AERIE_CHECK(spec.rope.theta.value > 1.0 && spec.rope.factor.value >= 1.0);
  AERIE_CHECK(spec.rope.amplitude.value > 0.0);
  AERIE_CHECK(spec.rms_norm_eps.value > 0.0);
  AERIE_CHECK(spec.intermediate_size.value >= 1 && spec.num_captures.value >= 1);
  if (target.known()) {
    AERIE_CHECK(spec.wiring.value.size() == spec.num_captures.value);
    AERIE_CHECK(spec.draft_vocab_size.value <= target.vocab_size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const absl::string_view config(input.data(), end == std::string_view::npos ? size : end);
  std::vector<TensorSpan> tensors;
  if (end == std::string_view::npos || !TensorsOf(input.substr(end + 1), tensors)) {
    tensors = SoundTensors();
  }
  Resolve(config, tensors, {.num_layers = 12, .hidden_size = 8, .vocab_size = 20});
  Resolve(config, tensors, {});

  aerie::Complaints complaints;
  aerie::ReadMeasuredWiring(config, "0123456789abcdef", complaints);
  const auto target = aerie::ReadTargetSpec(config, complaints);
  AERIE_CHECK(!target.has_value() || target->hidden_size >= 1);
  return 0;
}
